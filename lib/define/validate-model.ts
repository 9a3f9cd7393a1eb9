import { POISON_TABLE } from '../engine/consume/poison.ts';
import { operations } from '../engine/transfer/operation.ts';
import { resourcesOf } from '../operations/resources.ts';
import { LIST } from '../patterns/member-list.ts';
import { PERIOD_DIGITS } from './calendar.ts';
import { type Entity, isWrittenByClients, withArchives } from './entity.ts';
import { PLACEHOLDER, TOMBSTONE } from './entity-codec.ts';
import { remoteTables } from './index-entries.ts';
import { canMeet, NUMBER_SUFFIX, type Steps, stepsOf } from './key-overlap.ts';
import type { KeyTemplate } from './key-template.ts';

/** The service reserves it: https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
const SERVICE_TABLE = 'tables';
/** The Functions host keeps its locks and secrets there, and the deployment (infra/main.bicep) its packages. */
const HOST_CONTAINERS = /^(azure-webjobs-.*|deployments)$/;
/** What `EntityType` is in rows that are no entity of the model. */
const ROW_TYPES = [LIST, TOMBSTONE, PLACEHOLDER, POISON_TABLE, operations.name];

/**
 * Everything that is wrong with a model as a whole, a sentence each; what is wrong with one entity alone is refused when the
 * entity is defined. `createRoutes` checks the same of the routes, which are made later.
 */
export function validateModel(entities: readonly Entity[]): string[] {
  const checks = [
    nameErrors(entities),
    referenceErrors(entities),
    tableErrors(entities),
    containerErrors(entities),
    overlapErrors(entities),
  ];
  return checks.flatMap((errors) => [...errors]);
}

function* nameErrors(entities: readonly Entity[]): Generator<string> {
  const seen = new Set<string>();
  for (const { name } of withArchives(entities)) {
    if (seen.has(name))
      yield `Entity "${name}" is declared twice, or is also an archive's table; each needs a name of its own.`;
    seen.add(name);
    if (ROW_TYPES.includes(name))
      yield `Entity "${name}": the engine's own rows have this type; every name but ${ROW_TYPES.join(', ')} is accepted.`;
  }
}

/** An entity that another one refers to has to be in the model as well: else nothing keeps the two in step. */
function* referenceErrors(entities: readonly Entity[]): Generator<string> {
  for (const { name, childOf, counts, denormalized, access } of entities) {
    const references: [string, Entity][] = [
      ...(childOf ? [['is a child of', childOf] as [string, Entity]] : []),
      ...Object.values(counts).map((counted): [string, Entity] => ['counts', counted]),
      ...denormalized.map(({ source }): [string, Entity] => ['copies fields from', source]),
      ...(access.own && 'through' in access.own
        ? [['is granted through', access.own.through] as [string, Entity]]
        : []),
    ];
    for (const [relation, other] of references)
      if (!entities.includes(other))
        yield `Entity "${name}" ${relation} "${other.name}", which is not in the model; add "${other.name}", or leave "${name}" out.`;
  }
}

function* tableErrors(entities: readonly Entity[]): Generator<string> {
  const reserved = [...resourcesOf([]).tables, operations.table, SERVICE_TABLE];
  for (const entity of entities) {
    for (const table of new Set(tablesOf(entity)))
      if (reserved.includes(table))
        yield `Entity "${entity.name}": the table name "${table}" is reserved; every name but ${reserved.join(', ')} is accepted.`;
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
  const all = [...entities, operations];
  for (const entity of all)
    for (const other of entity.period ? all.filter((one) => one !== entity) : [])
      for (const table of new Set(tablesOf(other)))
        if (couldBePeriodOf(entity, table) || (table === other.table && couldBePeriodOf(entity, withDigits(other))))
          yield `Entity "${other.name}": the table "${table}" could be a ${entity.period?.per} of "${entity.name}", whose tables are dropped; it needs a name that is not "${entity.table}", with or without digits after it.`;
}

function couldBePeriodOf({ table, period }: Entity, name: string): boolean {
  return (
    name === table || (period !== undefined && new RegExp(`^${table}\\d{${PERIOD_DIGITS[period.per]}}$`).test(name))
  );
}

/** The table, or what the name of a table for one of its periods looks like. */
function withDigits({ table, period }: Entity): string {
  return period ? table + '0'.repeat(PERIOD_DIGITS[period.per]) : table;
}

function* containerErrors(entities: readonly Entity[]): Generator<string> {
  const reserved = resourcesOf([]).containers;
  for (const { name, attachments } of entities)
    for (const [field, { container }] of Object.entries(attachments))
      if (reserved.includes(container) || HOST_CONTAINERS.test(container))
        yield `Entity "${name}": the container "${container}" of the attachment "${field}" is reserved, and its files would be deleted or mixed with others; every name but ${reserved.join(', ')}, deployments and azure-webjobs-… is accepted.`;
}

/** One kind of row that an entity has in a table. */
interface RowKind {
  readonly entity: Entity;
  readonly what: string;
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  readonly suffix?: Steps;
}

/** Two kinds of rows with one key would overwrite or block each other. */
function* overlapErrors(entities: readonly Entity[]): Generator<string> {
  for (const kinds of Map.groupBy(entities.flatMap(rowKinds), ({ table }) => table).values())
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

function rowKinds(entity: Entity): RowKind[] {
  const { table, partition, row, series, archive, indexes } = entity;
  const own = { entity, table, partition, row };
  const isWide = series && series.last - series.first + 1 > series.perRow;
  const archived = archive ? [archive, ...archive.children] : [];
  return [
    { ...own, what: 'its row' },
    ...(isWide ? [{ ...own, what: 'its further rows', suffix: NUMBER_SUFFIX }] : []),
    ...Object.entries(indexes).map(([name, index]) => {
      return { ...own, ...index.remote, row: index.row, what: `the rows of its index "${name}"` };
    }),
    ...archived.map(({ table, partition, row }) => ({ entity, table, partition, row, what: 'its archived row' })),
  ];
}

/** The tables that an entity has to itself. */
function ownTables(entity: Entity): string[] {
  return [...remoteTables(entity), ...(entity.archive ? [entity.archive.table] : [])];
}

function tablesOf(entity: Entity): string[] {
  return [entity.table, ...ownTables(entity)];
}
