import { MAX_NAME_LENGTH, PREFIX, prefixTable, prefixWithHyphen } from '../../storage/resource-names.ts';
import { canWriteThroughGrant, type Denormalized, type Entity, formerOf, keptByEngine } from '../declaration/entity.ts';
import { limitErrors, type RequestLimit } from '../declaration/request-limit.ts';
import { projectionsOf, tablesOf } from '../places/index-entries.ts';
import { type Placement, placementErrors } from '../places/placement.ts';
import { lookupBy, referringFields } from '../places/relation.ts';
import { overlapErrors } from './key-overlap.ts';
import { existingErrors } from './validate-existing.ts';
import { ruleErrors } from './validate-rules.ts';
import { userRowErrors } from './validate-user-rows.ts';
import { visitorErrors } from './validate-visitors.ts';

/**
 * The service reserves this name:
 * https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
 */
const SERVICE_TABLE = 'tables';
/** The Functions host writes its diagnostic events and logs to tables such as AzureFunctionsDiagnosticEvents202611; case is ignored. */
const HOST_TABLES = /^azure(functions|webjobs)/;
/** The names and row types that the engine reserves in every model. */
export interface Reserved {
  readonly tables: readonly string[];
  /** The engine's own entities, in reserved tables. */
  readonly entities: readonly Entity[];
  readonly containers: readonly string[];
  /** The first segments of the routes without an entity. */
  readonly routes: readonly string[];
  /** The members of the store that are not entities. */
  readonly storeMembers: readonly string[];
  /** The values of `EntityType` in rows that are not entities of the model. */
  readonly rowTypes: readonly string[];
}

interface ModelParts {
  readonly entities: readonly Entity[];
  /** The operations of the app. */
  readonly operations: readonly {
    readonly name: string;
    readonly kind: 'read' | 'write';
    readonly roles: readonly string[];
  }[];
  readonly roles: readonly string[];
  readonly operatorRole: string;
  readonly signedIn?: string | undefined;
  readonly anyone?: string | undefined;
  readonly steward?: string | undefined;
  readonly limits: readonly RequestLimit[];
  readonly prefix: string;
  readonly containerAccounts: Readonly<Record<string, string>>;
  readonly placement: Readonly<Record<string, Placement>>;
}

/**
 * Lists the errors of the linked entities of a model. `defineEntity` checks the parts of one entity that are independent of
 * patterns; `createRoutes` checks the routes, which are created later.
 */
export function validateModel(model: ModelParts, reserved: Reserved): string[] {
  const { entities, prefix } = model;
  const checks = [
    prefixErrors(prefix),
    roleErrors(model),
    visitorErrors(model),
    limitErrors(model.limits, model),
    nameErrors(entities, reserved),
    operationErrors(model, reserved),
    tableErrors(entities, reserved),
    ...entities.map((entity) =>
      naming(entity, [...entityErrors(entity), ...ruleErrors(entity), ...existingErrors(entity, entities)]),
    ),
    userRowErrors(entities),
    ...patternErrors(entities, reserved),
    overlapErrors(entities),
    containerErrors(model, reserved),
    placementErrors({ list: entities, placement: model.placement }),
  ];
  const errors = checks.flatMap((found) => [...found]);
  // The tables of an invalid period have no names.
  return errors.length > 0 ? errors : entities.flatMap((entity) => [...naming(entity, lengthErrors(entity, prefix))]);
}

function* naming({ name }: Entity, errors: Iterable<string>): Generator<string> {
  for (const error of errors) yield `Entity "${name}": ${error}`;
}

function patternErrors(entities: readonly Entity[], reserved: Reserved): Iterable<string>[] {
  const all = [...entities, ...reserved.entities];
  const model = { entities: all, containers: reserved.containers };
  return all.flatMap((entity) =>
    entity.features.map(({ validate }) => naming(entity, validate?.(entity, model) ?? [])),
  );
}

function* prefixErrors(prefix: string): Generator<string> {
  if (prefix !== '' && !PREFIX.test(prefix))
    yield `The prefix ${JSON.stringify(prefix)} is not accepted. Use 1 to 20 lower-case letters and digits from 1 to 9, a letter first, other than azure, insights and scm. The digit 0 ends the prefix in the names of tables.`;
}

/** An account is known only at the start, from the settings. */
function* containerErrors({ entities, containerAccounts }: ModelParts, reserved: Reserved): Generator<string> {
  const ofEntity = (entity: Entity) => entity.features.flatMap(({ stored }) => stored?.blobs?.containers(entity) ?? []);
  const known = [...new Set([...reserved.containers, ...entities.flatMap(ofEntity)])].sort();
  for (const container of Object.keys(containerAccounts).filter((name) => !known.includes(name)))
    yield `containerAccounts names the container "${container}", which the model does not have. Use one of ${known.join(', ')}.`;
}

/** Without a prefix, every name that a declaration accepts is short enough. */
function* lengthErrors(entity: Entity, prefix: string): Generator<string> {
  const tables = entity.features.flatMap(({ layout }) => layout?.periods?.tables(entity, Date.now()) ?? []);
  const containers = entity.features.flatMap(({ stored }) => stored?.blobs?.containers(entity) ?? []);
  const names = [
    ...[...tablesOf(entity), ...tables].map((name) => prefixTable(prefix, name)),
    ...containers.map((name) => prefixWithHyphen(prefix, name)),
  ];
  for (const name of names.filter(({ length }) => length > MAX_NAME_LENGTH))
    yield `the name "${name}" has ${name.length} characters with the prefix "${prefix}". Use at most ${MAX_NAME_LENGTH} for a table or container.`;
}

/** Token claims and comma-separated lists contain roles. */
const ROLE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$/;

function* roleErrors({ entities, roles, operatorRole, signedIn, anyone, steward }: ModelParts): Generator<string> {
  for (const [position, role] of roles.entries()) {
    if (!ROLE_NAME.test(role))
      yield `The role ${JSON.stringify(role)} is not accepted. Use 1 to 120 letters, digits, dots, hyphens and underscores, a letter or digit first.`;
    if (roles.indexOf(role) < position) yield `The role "${role}" is declared twice. Remove one.`;
  }
  if (!roles.includes(operatorRole))
    yield `operatorRole is "${operatorRole}", which is not a role of the model. Use one of ${roles.join(', ')}.`;
  if (signedIn !== undefined && !roles.includes(signedIn))
    yield `signedIn is "${signedIn}", which is not a role of the model. Use one of ${roles.join(', ')}.`;
  if (signedIn === operatorRole)
    yield `signedIn is "${signedIn}", which is also operatorRole: everybody who signs in would be an operator. Use another role.`;
  if (steward !== undefined && !roles.includes(steward))
    yield `steward is "${steward}", which is not a role of the model. Use one of ${roles.join(', ')}.`;
  if (steward !== undefined && [signedIn, anyone].includes(steward))
    yield `steward is "${steward}", which is also ${steward === anyone ? 'anyone' : 'signedIn'}: everybody would see everything. Use another role.`;
  for (const { name, access } of entities) {
    const named = new Set([
      ...access.read,
      ...access.write,
      ...Object.values(access.restricted ?? {}).flat(),
      ...Object.values(access.unveiled ?? {}).flatMap((rule) => rule.map(({ role }) => role)),
    ]);
    for (const role of named)
      if (role !== undefined && !roles.includes(role))
        yield `Entity "${name}": access names the role "${role}", which is not a role of the model. Use one of ${roles.join(', ')}.`;
  }
}

function* nameErrors(entities: readonly Entity[], reserved: Reserved): Generator<string> {
  const rowTypes = [...reserved.rowTypes, ...reserved.entities.map(({ name }) => name)];
  for (const name of entities.flatMap(({ name, archive }) => (archive ? [name, archive.table] : [name]))) {
    if (reserved.routes.includes(name))
      yield `Entity "${name}": the API itself has a route /api/${name}. Choose a name other than ${reserved.routes.join(', ')}.`;
    if (reserved.storeMembers.includes(name))
      yield `Entity "${name}": the store has a member ${name}. Choose a name other than ${reserved.storeMembers.join(', ')}.`;
    if (rowTypes.includes(name))
      yield `Entity "${name}": the engine's own rows have this type. Choose a name other than ${rowTypes.join(', ')}.`;
  }
}

/** The route of an operation is its name, of which routes ignore the case. */
function* operationErrors({ operations, entities, roles }: ModelParts, { routes }: Reserved): Generator<string> {
  const taken = new Map<string, string>(routes.map((route) => [route, `the API itself has a route /api/${route}`]));
  for (const { name, archive } of entities)
    for (const path of archive ? [name, archive.table] : [name]) taken.set(path, `the entity "${name}" has the route`);
  for (const { name, roles: named } of operations) {
    const other = taken.get(name.toLowerCase());
    if (other !== undefined) yield `Operation "${name}": ${other}. Choose another name; case is ignored.`;
    taken.set(name.toLowerCase(), `the operation "${name}" has the route`);
    for (const role of named)
      if (!roles.includes(role))
        yield `Operation "${name}" names the role "${role}", which is not a role of the model. Use one of ${roles.join(', ')}.`;
  }
}

/** Rows that are found by the key of an entity do not move with it. */
function* rekeyErrors(entity: Entity): Generator<string> {
  if (!entity.formerKey) return;
  const { children, countedBy, dependents, formerKey, partition } = entity;
  const { own } = entity.access;
  const links = Object.values(entity.denormalized);
  // The queue finds the entities with copies at either key, if an index of another table has them.
  const isFoundByKey = ({ field, source: to, by }: Denormalized) => {
    const fields = referringFields({ from: () => entity, field, to, by });
    return [entity, formerOf(entity)].some((each) => each && lookupBy(each, fields)?.isRemote === false);
  };
  const isSamePartition = formerKey.partition.template === partition.template;
  const reasons: readonly (readonly [what: string, isSo: boolean])[] = [
    ['has children', children.length > 0],
    ['is a child', entity.childOf !== undefined],
    ['counts', Object.keys(entity.counts).length > 0],
    ['is counted in its partition', !isSamePartition && countedBy.length > 0],
    ['is copied from', dependents.length > 0],
    ['copies fields in its partition', links.some(({ fanOut }) => !fanOut)],
    ['copies fields and is found by its key', links.some((link) => link.fanOut && isFoundByKey(link))],
    ['has a period', entity.period !== undefined],
    ['is a series', entity.series !== undefined],
    ['is granted', own !== undefined && 'through' in own],
  ];
  for (const [what, isSo] of reasons)
    if (isSo)
      yield `an entity that ${what} cannot get another key by key.former. Export, purge and import the entities instead.`;
}

/** Yields the errors of an entity that are independent of its patterns. */
function* entityErrors(entity: Entity): Generator<string> {
  const { keyFields, features, derived, defaults, archive } = entity;
  const names = projectionsOf(entity).map(({ name }) => name);
  for (const name of new Set(names.filter((each, at) => names.indexOf(each) < at)))
    yield `the name "${name}" is used twice: by an index, totals or an option whose rows have it. Rename the index or the totals.`;
  const decided = features.flatMap(({ name, keptFields }) =>
    (keptFields?.(entity) ?? []).map((field) => ({ field, by: name })),
  );
  const remote = features.flatMap(({ name, stored }) =>
    (stored?.references(entity) ?? []).map((field) => ({ field, by: name })),
  );
  for (const { field, by } of decided) {
    if (keyFields.includes(field))
      yield `the key field "${field}" is set by the engine (${by}), and a key does not change. Use another field in the key.`;
    const other = remote.find((one) => one.field === field);
    if (other)
      yield `the field "${field}" is set by the engine (${by}) and must be stored as it is. Remove it from ${other.by}.`;
  }
  yield* rekeyErrors(entity);
  const computed = Object.entries<object>({ derived, defaults }).flatMap(([by, fields]) =>
    Object.keys(fields).map((field) => ({ field, by })),
  );
  const both = [...decided, ...computed];
  for (const [field, [first, second]] of Map.groupBy(both, (one) => one.field))
    if (first && second)
      yield `the field "${field}" is set twice, by ${first.by} and by ${second.by}. Remove it from one of them.`;
  if (entity.isWrittenByClients && Object.keys(entity.checks).length > 0)
    yield 'clients may write it straight to storage (access.own), where no checks run. Remove checks, or grant only r.';
  if (entity.isWrittenByClients && !canWriteThroughGrant(entity)) {
    const kept = [...(archive ? ['archive'] : []), ...keptByEngine(entity).map(({ name }) => name)];
    yield `clients may write it straight to storage (access.own), where nothing keeps up ${kept.join(', ')}. Remove those, also in entities that refer to it, or grant only r.`;
  }
}

function* tableErrors(entities: readonly Entity[], reserved: Reserved): Generator<string> {
  const tables = [...reserved.tables, ...reserved.entities.map(({ table }) => table), SERVICE_TABLE];
  for (const entity of entities) {
    const [own, ...further] = tablesOf(entity);
    const find = (table: string) => entities.find((one) => one !== entity && tablesOf(one).includes(table));
    for (const table of tablesOf(entity))
      if (tables.includes(table))
        yield `Entity "${entity.name}": the table name "${table}" is reserved. Choose a name other than ${tables.join(', ')}.`;
    for (const table of tablesOf(entity))
      if (HOST_TABLES.test(table))
        yield `Entity "${entity.name}": the table name "${table}" is reserved for the Functions host. Choose a name that does not begin with azurefunctions or azurewebjobs.`;
    for (const table of further) {
      const other = find(table);
      if (other)
        yield `Entity "${entity.name}": its table "${table}", of an index, an archive or a pattern, is used by "${other.name}" too. Give it a table of its own.`;
    }
    // A grant opens a partition of the table with all row keys: a client could write a row of the other entity.
    const other = entity.isWrittenByClients && own !== undefined && find(own);
    if (other)
      yield `Entity "${entity.name}": clients may write its table "${own}" (access.own), which "${other.name}" uses too. Give it a table of its own.`;
  }
}
