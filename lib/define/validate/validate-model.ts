import { type DeclaredEntity, isOneRow, isWrittenByClients } from '../entity.ts';
import { PERIOD_DIGITS } from '../keys/calendar.ts';
import { indexTables } from '../keys/index-entries.ts';
import { canMeet, NUMBER_SUFFIX, type Steps, stepsOf } from '../keys/key-overlap.ts';
import type { KeyTemplate } from '../keys/key-template.ts';

/** The service reserves it: https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
const SERVICE_TABLE = 'tables';
/** The Functions host keeps its locks and secrets there, and the deployment (infra/main.bicep) its packages. */
const HOST_CONTAINERS = /^(azure-webjobs-.*|deployments)$/;
/** What the engine keeps beside a model. */
export interface Reserved {
  readonly tables: readonly string[];
  /** Entities of the engine's own, in tables that are reserved with it. */
  readonly entities: readonly DeclaredEntity[];
  readonly containers: readonly string[];
  /** What `EntityType` is in rows that are no entity of the model. */
  readonly rowTypes: readonly string[];
}

interface ToValidate {
  readonly entities: readonly DeclaredEntity[];
  readonly roles: readonly string[];
  readonly operatorRole: string;
}

/**
 * Everything that is wrong with a model as a whole, a sentence each; what is wrong with one entity alone is refused when the
 * entity is defined. `createRoutes` checks the same of the routes, which are made later.
 */
export function validateModel({ entities, roles, operatorRole }: ToValidate, reserved: Reserved): string[] {
  const checks = [
    roleErrors({ entities, roles, operatorRole }),
    nameErrors(entities, reserved),
    referenceErrors(entities),
    copyErrors(entities),
    clientErrors(entities),
    tableErrors(entities, reserved),
    containerErrors(entities, reserved),
    overlapErrors(entities),
  ];
  return checks.flatMap((errors) => [...errors]);
}

/** Roles come in a claim of a token and in lists that are separated by commas. */
const ROLE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$/;

function* roleErrors({ entities, roles, operatorRole }: ToValidate): Generator<string> {
  for (const [position, role] of roles.entries()) {
    if (!ROLE_NAME.test(role))
      yield `The role ${JSON.stringify(role)} is not accepted; a role is 1 to 120 letters, digits, dots, hyphens and underscores, and begins with a letter or digit.`;
    if (roles.indexOf(role) < position) yield `The role "${role}" is declared twice.`;
  }
  if (!roles.includes(operatorRole))
    yield `operatorRole is "${operatorRole}", which is not a role of the model; ${roles.join(', ')} are.`;
  for (const { name, access } of entities) {
    const named = new Set([...access.read, ...access.write, ...Object.values(access.restricted ?? {}).flat()]);
    for (const role of named)
      if (role !== undefined && !roles.includes(role))
        yield `Entity "${name}": access names the role "${role}", which is not a role of the model; ${roles.join(', ')} are.`;
  }
}

function* nameErrors(entities: readonly DeclaredEntity[], reserved: Reserved): Generator<string> {
  const seen = new Set<string>();
  const rowTypes = [...reserved.rowTypes, ...reserved.entities.map(({ name }) => name)];
  for (const name of entities.flatMap(({ name, archive }) => (archive ? [name, archive.table] : [name]))) {
    if (seen.has(name))
      yield `Entity "${name}" is declared twice, or is also an archive's table; each needs a name of its own.`;
    seen.add(name);
    if (rowTypes.includes(name))
      yield `Entity "${name}": the engine's own rows have this type; every name but ${rowTypes.join(', ')} is accepted.`;
  }
}

/** The entities that a declaration refers to, with how. */
function referencesOf({ childOf, counts, denormalized, access: { own } }: DeclaredEntity): [string, DeclaredEntity][] {
  const references: [string, DeclaredEntity | undefined][] = [
    ['is a child of', childOf],
    ...Object.values(counts).map((counted): [string, DeclaredEntity] => ['counts', counted]),
    ...denormalized.map(({ source }): [string, DeclaredEntity] => ['copies fields from', source]),
    ['is granted through', own && 'through' in own ? own.through : undefined],
  ];
  return references.flatMap(([relation, other]) => (other ? [[relation, other]] : []));
}

/** An entity that another one refers to has to be in the model as well: else nothing keeps the two in step. */
function* referenceErrors(entities: readonly DeclaredEntity[]): Generator<string> {
  for (const entity of entities)
    for (const [relation, other] of referencesOf(entity)) {
      const { name } = entity;
      const isOther = entities.some((one) => one !== other && one.name === other.name);
      if (isOther && !entities.includes(other))
        yield `Entity "${name}" ${relation} "${other.name}", and the model has another declaration of that name; both must be the same one.`;
      else if (!entities.includes(other))
        yield `Entity "${name}" ${relation} "${other.name}", which is not in the model; add "${other.name}", or leave "${name}" out.`;
    }
}

/** A source stores the row key of one row that copies it. */
function* copyErrors(entities: readonly DeclaredEntity[]): Generator<string> {
  const links = entities.flatMap(({ name, denormalized }) => denormalized.map(({ source }) => ({ name, source })));
  for (const [source, copies] of Map.groupBy(links, (link) => link.source))
    for (const { name } of copies.slice(1))
      yield `Entity "${name}": the denormalized fields copy from "${source.name}", and only one row of a partition may; "${copies[0]?.name}" copies from it already.`;
}

/** Rows that clients write past the API change nothing in other entities. */
function* clientErrors(entities: readonly DeclaredEntity[]): Generator<string> {
  for (const entity of entities)
    for (const [relation, other] of referencesOf(entity))
      if (relation !== 'is granted through' && isWrittenByClients(other) && isOneRow(other))
        yield `Entity "${entity.name}" ${relation} "${other.name}", which clients may write straight to storage (access.own), where nothing keeps the two in step; grant only r on "${other.name}".`;
}

function* tableErrors(entities: readonly DeclaredEntity[], reserved: Reserved): Generator<string> {
  const tables = [...reserved.tables, ...reserved.entities.map(({ table }) => table), SERVICE_TABLE];
  for (const entity of entities) {
    for (const table of new Set(tablesOf(entity)))
      if (tables.includes(table))
        yield `Entity "${entity.name}": the table name "${table}" is reserved; every name but ${tables.join(', ')} is accepted.`;
    for (const table of new Set(ownTables(entity))) {
      const other = entities.find((one) => one !== entity && tablesOf(one).includes(table));
      if (other)
        yield `Entity "${entity.name}": its index or archive is in the table "${table}", which "${other.name}" uses; the table of an index or archive belongs to one entity.`;
    }
  }
  // A grant opens a partition of the table, whatever the row key: a client could write a row of the other entity.
  for (const entity of entities.filter(isWrittenByClients)) {
    const other = entities.find((one) => one !== entity && tablesOf(one).includes(entity.table));
    if (other)
      yield `Entity "${entity.name}": clients may write its table "${entity.table}" (access.own), which "${other.name}" uses too; it needs a table of its own.`;
  }
  const all = [...entities, ...reserved.entities];
  for (const entity of all)
    for (const other of entity.period ? all.filter((one) => one !== entity) : [])
      for (const table of new Set(tablesOf(other)))
        if (couldBePeriodOf(entity, table) || (table === other.table && couldBePeriodOf(entity, withDigits(other))))
          yield `Entity "${other.name}": the table "${table}" could be a ${entity.period?.per} of "${entity.name}", whose tables are dropped; it needs a name that is not "${entity.table}", with or without digits after it.`;
}

function couldBePeriodOf({ table, period }: DeclaredEntity, name: string): boolean {
  return (
    name === table || (period !== undefined && new RegExp(`^${table}\\d{${PERIOD_DIGITS[period.per]}}$`).test(name))
  );
}

/** The table, or what the name of a table for one of its periods looks like. */
function withDigits({ table, period }: DeclaredEntity): string {
  return period ? table + '0'.repeat(PERIOD_DIGITS[period.per]) : table;
}

function* containerErrors(entities: readonly DeclaredEntity[], { containers }: Reserved): Generator<string> {
  for (const { name, attachments } of entities)
    for (const [field, { container }] of Object.entries(attachments))
      if (containers.includes(container) || HOST_CONTAINERS.test(container))
        yield `Entity "${name}": the container "${container}" of the attachment "${field}" is reserved, and its files would be deleted or mixed with others; every name but ${containers.join(', ')}, deployments and azure-webjobs-… is accepted.`;
}

/** One kind of row that an entity has in a table. */
interface RowKind {
  readonly entity: DeclaredEntity;
  readonly what: string;
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  readonly suffix?: Steps;
}

/** Two kinds of rows with one key would overwrite or block each other. */
function* overlapErrors(entities: readonly DeclaredEntity[]): Generator<string> {
  for (const kinds of Map.groupBy(
    entities.flatMap((entity) => rowKinds(entity, entities)),
    ({ table }) => table,
  ).values())
    for (const [position, one] of kinds.entries())
      for (const other of kinds.slice(position + 1))
        if (haveOneKey(one, other))
          yield `Entity "${other.entity.name}": ${other.what} (${keyOf(other)}) can have the same key as ${one.what} (${keyOf(one)}) of "${one.entity.name}" in the table "${one.table}"; their row keys must begin with different texts, or the schema must keep their fields apart.`;
}

function haveOneKey(one: RowKind, other: RowKind): boolean {
  const partitions = [one, other].map(({ entity, partition }) => stepsOf(entity, partition));
  const rows = [one, other].map(({ entity, row, suffix }) => stepsOf(entity, row, suffix));
  return [partitions, rows].every(([first = [], second = []]) => canMeet(first, second));
}

function keyOf({ partition, row, suffix }: RowKind): string {
  return `${partition.template} / ${row.template}${suffix ? '_{number}' : ''}`;
}

function rowKinds(entity: DeclaredEntity, entities: readonly DeclaredEntity[]): RowKind[] {
  const { table, partition, row, series, archive, indexes } = entity;
  const own = { entity, table, partition, row };
  const isWide = series && series.last - series.first + 1 > series.perRow;
  const archived = archive ? [entity, ...entities.filter(({ childOf }) => childOf === entity)] : [];
  return [
    { ...own, what: 'its row' },
    ...(isWide ? [{ ...own, what: 'its further rows', suffix: NUMBER_SUFFIX }] : []),
    ...Object.entries(indexes).map(([name, index]) => {
      return { ...own, ...index.remote, row: index.row, what: `the rows of its index "${name}"` };
    }),
    ...archived.map(({ partition, row }) => {
      return { entity, table: archive?.table ?? table, partition, row, what: 'its archived row' };
    }),
  ];
}

/** The tables that an entity has to itself. */
function ownTables(entity: DeclaredEntity): string[] {
  return [...indexTables(entity), ...(entity.archive ? [entity.archive.table] : [])];
}

function tablesOf(entity: DeclaredEntity): string[] {
  return [entity.table, ...ownTables(entity)];
}
