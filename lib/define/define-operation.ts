import { z } from 'zod';
import { DeclarationError } from '../base/errors.ts';
import { JSON_TYPES, schemaMetadata } from './schema/field-schema.ts';
import { names, optionErrors, optionsOf } from './schema/options.ts';
import { inheritedNameErrors } from './validate/validate-entity.ts';

/**
 * An operation of an app, beside those that each entity has. The model declares it, so that the client knows its types, and the functions
 * of the app implement it.
 */

interface OperationDeclaration<Input extends z.ZodType, Output extends z.ZodType, Role extends string> {
  /** What the operation does, in one sentence for its callers. */
  readonly summary: string;
  /** A read changes nothing, so it may be repeated at any time. */
  readonly kind: 'read' | 'write';
  /** The caller needs one of these roles. */
  readonly roles: readonly Role[];
  /** What a caller sends, as JSON. */
  readonly input: Input;
  /** What a caller gets, as JSON. Members that an object of the schema does not declare are left out. */
  readonly output: Output;
  /**
   * True if a write that is repeated with the same request id has the effect of one. The creates, increments and transactions of the
   * implementation then have ids that follow from that of the request.
   */
  readonly repeatable?: true;
}

export interface DeclaredOperation<
  Name extends string = string,
  Input extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
  Role extends string = string,
> extends OperationDeclaration<Input, Output, Role> {
  readonly name: Name;
}

/** The operations of a model, by name. */
export type Operations = Readonly<Record<string, DeclaredOperation>>;
export type OperationsOf<Declared extends readonly DeclaredOperation[]> = {
  readonly [One in Declared[number] as One['name']]: One;
};

const schema = z.custom<z.ZodType>((given) => given instanceof z.ZodType, { error: 'needs a schema of zod' });
const OperationOptions = optionsOf({
  summary: z.string().min(1),
  kind: z.enum(['read', 'write']),
  roles: names,
  input: schema,
  output: schema,
  repeatable: z.literal(true).optional(),
} satisfies Record<keyof OperationDeclaration<z.ZodType, z.ZodType, string>, z.ZodType>);

/** The name is the path, and a member of the store and the client. */
const NAME = /^[a-z][A-Za-z0-9]{0,59}$/;

/**
 * Declares an operation of an app. Throws an error that lists everything that is wrong.
 *
 * @example
 * const checkIn = defineOperation('checkIn', {
 *   summary: 'Register a vehicle by its plate',
 *   kind: 'write',
 *   roles: ['editor'],
 *   input: z.object({ depot: z.string(), plate: z.string() }),
 *   output: z.object({ vehicleId: z.string() }),
 * });
 */
export function defineOperation<
  const Name extends string,
  Input extends z.ZodType,
  Output extends z.ZodType,
  const Role extends string,
>(name: Name, declaration: OperationDeclaration<Input, Output, Role>): DeclaredOperation<Name, Input, Output, Role> {
  const errors = optionErrors(OperationOptions, declaration);
  if (errors.length === 0) errors.push(...operationErrors(name, declaration));
  if (errors.length > 0) throw new DeclarationError(errors.map((error) => `Operation "${name}": ${error}`).join('\n'));
  return Object.freeze({
    ...declaration,
    name,
    roles: Object.freeze([...declaration.roles]),
    input: rejectUnknown(declaration.input),
    output: leaveOutUnknown(declaration.output),
  });
}

/** A misspelt member that is optional would have no effect. */
function rejectUnknown<Input extends z.ZodType>(input: Input): Input {
  const isOpen = input instanceof z.ZodObject && input.def.catchall === undefined;
  return isOpen ? (input.strict() as z.ZodType as Input) : input;
}

/** The schema of an entity rejects unknown members, and an operation may return a part of what is stored. */
function leaveOutUnknown<Output extends z.ZodType>(output: Output): Output {
  const isStrict = output instanceof z.ZodObject && output.def.catchall instanceof z.ZodNever;
  return isStrict ? (output.strip() as z.ZodType as Output) : output;
}

function* operationErrors(
  name: string,
  { kind, roles, input, output, repeatable }: OperationDeclaration<z.ZodType, z.ZodType, string>,
): Generator<string> {
  if (!NAME.test(name) || name === 'then')
    yield 'the name is not accepted. Use 1 to 60 letters and digits, a lower-case letter first, other than then.';
  yield* inheritedNameErrors('operation', [name]);
  if (roles.length === 0) yield 'no role may call it. Name at least one, or remove the operation.';
  if (kind === 'read' && repeatable) yield 'a read may always be repeated. Remove "repeatable".';
  for (const [member, type] of Object.entries({ input, output } as const)) {
    const reason = reasonNotJson(type, member as 'input' | 'output');
    if (reason !== undefined) yield `"${member}" has a type that JSON does not have: ${reason}. ${JSON_TYPES}`;
  }
}

/** Why a schema cannot describe JSON; undefined if it can. */
function reasonNotJson(type: z.ZodType, io: 'input' | 'output'): string | undefined {
  try {
    z.toJSONSchema(type, { io, metadata: schemaMetadata });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
