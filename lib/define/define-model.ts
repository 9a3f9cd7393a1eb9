import { z } from 'zod';
import { DeclarationError } from '../base/errors.ts';
import { withoutPrototype } from '../base/values.ts';
import type { Access, DeclaredEntity } from './declaration/declaration.ts';
import type { Entity } from './declaration/entity.ts';
import type { Feature } from './declaration/feature.ts';
import { linkEntities, linkErrors } from './link-entities.ts';
import { declaredEntity, names, optionErrors, optionsOf } from './schema/options.ts';
import { type Reserved, validateModel } from './validate/validate-model.ts';

export interface ModelDeclaration<
  Declared extends readonly DeclaredEntity[],
  Roles extends readonly string[] = readonly string[],
> {
  /**
   * Begins the names of all tables, queues and containers of the model, so that several apps can share a storage account: 1 to
   * 20 lower-case letters and digits from 1 to 9, a letter first. Without it, the names are the declared ones.
   */
  readonly prefix?: string;
  /** The roles that a token may have (its claim `roles`) and that `access` of an entity may name. */
  readonly roles: Roles;
  /** The role that may run the operations: consistency checks, poison messages, the audit log. */
  readonly operatorRole: NoInfer<Roles[number]>;
  readonly entities: CheckedRoles<Declared, Roles[number]>;
}

/** The entities, if their roles are declared; otherwise a sentence for the compiler to show. */
type CheckedRoles<Declared extends readonly DeclaredEntity[], Role extends string> = [
  Exclude<RolesOf<Declared[number]>, Role>,
] extends [never]
  ? Declared
  : {
      readonly [Index in keyof Declared]: [Exclude<RolesOf<Declared[Index]>, Role>] extends [never]
        ? Declared[Index]
        : `"${Exclude<RolesOf<Declared[Index]>, Role>}" is not a role of the model`;
    };
/** `never` for an entity whose roles the compiler does not know. The model validates them anyway. */
type RolesOf<One> = One extends { readonly access: Access<string, infer Role> }
  ? string extends Role
    ? never
    : Role
  : never;

/** The entities of a model by name, each as it is declared. */
export type EntitiesOf<Declared extends readonly DeclaredEntity[]> = {
  readonly [One in Declared[number] as One['name']]: One;
};

/** Everything that an app stores, frozen. */
export interface Model<Declared extends readonly DeclaredEntity[] = readonly DeclaredEntity[]> {
  readonly entities: EntitiesOf<Declared>;
  /**
   * The linked entities in the order of the declaration.
   * @internal The types of the package end at the declarations.
   */
  readonly list: readonly Entity[];
  readonly roles: readonly string[];
  readonly operatorRole: string;
  /** The prefix of the names in the storage account; empty for none. The entities have their declared names. */
  readonly prefix: string;
}

/** What the library needs of a model. */
export interface LinkedModel extends Omit<Model, 'entities'> {
  readonly list: readonly Entity[];
}

interface ModelShape<Declared extends readonly DeclaredEntity[]> {
  readonly prefix?: string;
  readonly roles: readonly string[];
  readonly operatorRole: string;
  readonly entities: Declared;
}

const ModelOptions = optionsOf({
  prefix: z.string().optional(),
  roles: names,
  operatorRole: z.string(),
  entities: z.array(declaredEntity()).readonly(),
} satisfies Record<keyof ModelDeclaration<readonly DeclaredEntity[]>, z.ZodType>);

/** Validates and links a model. Throws an error that lists everything that is wrong. */
export function linkModel<const Declared extends readonly DeclaredEntity[]>(
  declaration: ModelShape<Declared>,
  { reserved, features }: { readonly reserved: Reserved; readonly features: readonly Feature<Entity>[] },
): Model<Declared> {
  refuse(optionErrors(ModelOptions, declaration));
  const { entities, roles, operatorRole, prefix = '' } = declaration;
  refuse([...linkErrors(entities)]);
  const list = linkEntities(entities, features);
  refuse(validateModel({ entities: list, roles, operatorRole, prefix }, reserved));
  return Object.freeze({
    entities: byName<Declared>(list),
    list,
    roles: Object.freeze([...roles]),
    operatorRole,
    prefix,
  });
}

function refuse(errors: readonly string[]): void {
  if (errors.length > 0) throw new DeclarationError(`The model is not valid.\n${errors.join('\n')}`);
}

/** A linked entity is used like its declaration, but the compiler cannot compare the types of all of its options. */
function byName<Declared extends readonly DeclaredEntity[]>(list: readonly Entity[]): EntitiesOf<Declared> {
  const entities = list.map((entity) => [entity.name, entity] as const);
  const frozen: unknown = Object.freeze(withoutPrototype(Object.fromEntries(entities)));
  return frozen as EntitiesOf<Declared>;
}
