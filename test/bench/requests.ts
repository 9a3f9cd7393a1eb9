import { TableClient, type TableEntity } from '@azure/data-tables';
import pMap from 'p-map';
import { engineReconcile } from '../kit/engine.ts';
import { type BenchRequest, send } from './http.ts';
import { type Comparison, repeat, type Side, type Sides, waitUntil } from './measure.ts';
import type { PlainCreate } from './plain.ts';
import { isEmpty, type Measured, type Servers } from './servers.ts';

/** Requests over HTTP: reads by key and by index, and creates. */

const READ_EMPLOYEES = 200;
const DEPARTMENTS = 500;
const SEEDING_CONCURRENCY = 8;
/** A marker of six digits that occurs in the rows of the template employee only. */
const TEMPLATE = '987654';
const [OWN, BY_EMAIL, BY_ID, BY_NAME] = [
  'employees',
  'employeesbyemail',
  'employeesbyid',
  'employeesbylastname',
] as const;

let created = 0;

export function requestComparisons(servers: Servers): Comparison[] {
  const { product, queued, plain } = servers;
  const seed = (body: object) => send(product, { method: 'POST', path: '/employees', body });
  const seedOnce = once(async () => {
    const readers = Array.from({ length: READ_EMPLOYEES }, (_, index) => ({
      ...employee(toId(index), 'Read'),
      nationalId: 'n',
    }));
    await pMap(readers, seed, { concurrency: SEEDING_CONCURRENCY });
  });
  let next = 0;
  return [
    {
      name: 'GET by key',
      async prepare() {
        await seedOnce();
        const rows = await copyRows(product.storage, OWN, {
          to: plain.storage,
          table: 'plainemployees',
          only: 'empid_0',
        });
        return toSides(
          servers,
          () => ({ method: 'GET', path: `/employees/Read/${toId(next++ % READ_EMPLOYEES)}` }),
          () => readRequest('plainemployees', rows[next++ % rows.length]),
        );
      },
    },
    {
      name: 'GET by full copy',
      async prepare() {
        await seedOnce();
        const rows = await copyRows(product.storage, BY_EMAIL, {
          to: plain.storage,
          table: 'plainbyemail',
          only: 'b0',
        });
        return toSides(
          servers,
          () => ({
            method: 'GET',
            path: `/employees/by/emailCompanyWide/b${toId(next++ % READ_EMPLOYEES)}@contoso.com`,
          }),
          () => readRequest('plainbyemail', rows[next++ % rows.length]),
        );
      },
    },
    {
      name: 'POST with indexes',
      async prepare() {
        await seed({ ...employee(TEMPLATE, `D${TEMPLATE}`), nationalId: 'n' });
        const template = await readTemplate(product.storage);
        return {
          ...toSides(servers, createRequest, () => plainCreateRequest(template)),
          'product, queue': toSide(queued, createRequest, () =>
            waitUntil(
              () => isEmpty(queued, engineReconcile.INDEX_CHANGES_QUEUE),
              `the queue ${engineReconcile.INDEX_CHANGES_QUEUE}`,
            ),
          ),
        };
      },
    },
  ];
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}

function toSide(server: Measured, request: () => BenchRequest, settled = async () => {}): Side {
  return repeat({ operation: () => send(server, request()), processes: [server.process], settled });
}

/** The product, and both kinds of plain servers. */
function toSides(servers: Servers, ofProduct: () => BenchRequest, ofPlain: () => BenchRequest): Sides {
  const { product, plain, plainFunction } = servers;
  return {
    plain: toSide(plain, ofPlain),
    product: toSide(product, ofProduct),
    'plain function': toSide(plainFunction, ofPlain),
  };
}

function readRequest(table: string, { partitionKey = '', rowKey = '' }: TableEntity = {} as TableEntity): BenchRequest {
  return { method: 'GET', path: `/row?${new URLSearchParams({ table, partition: partitionKey, row: rowKey })}` };
}

/** A new employee with an intra-partition index, a list, two unique values and a list in another partition. */
export function createEmployee() {
  const id = toId(100_000 + created++);
  return employee(id, `P${created % DEPARTMENTS}`);
}

function createRequest(): BenchRequest {
  return { method: 'POST', path: '/employees', body: { ...createEmployee(), nationalId: 'n' } };
}

function plainCreateRequest(template: PlainCreate): BenchRequest {
  const id = toId(100_000 + created++);
  return { method: 'POST', path: '/create', body: JSON.parse(JSON.stringify(template).replaceAll(TEMPLATE, id)) };
}

function employee(id: string, department: string) {
  return {
    department,
    employeeId: id,
    email: `b${id}@contoso.com`,
    firstName: 'Ann',
    lastName: `N${id}`,
    jobTitle: 'Clerk',
    hireDate: '2020-01-02',
  };
}

function toId(index: number): string {
  return String(index).padStart(6, '0');
}

/** The rows that the product stored for one employee, for the plain code to store under other keys. */
async function readTemplate(storage: string): Promise<PlainCreate> {
  const [own = [], byEmail = [], byId = [], byName = []] = await Promise.all(
    [OWN, BY_EMAIL, BY_ID, BY_NAME].map((table) => rowsOf(storage, table, TEMPLATE)),
  );
  const [list] = byName;
  const claims = [
    ...byEmail.map((entity) => ({ table: 'plainbyemail', entity })),
    ...byId.map((entity) => ({ table: 'plainbyid', entity })),
  ];
  if (own.length < 3 || claims.length !== 2 || !list) throw new Error('The employee has other rows than expected.');
  return {
    message: 'm'.repeat(600),
    claims,
    rows: { table: 'plainemployees', entities: own },
    list: { table: 'plainbylastname', entity: list },
    record: `${'r'.repeat(400)}\n`,
  };
}

function openTable(storage: string, table: string): TableClient {
  return TableClient.fromConnectionString(storage, table, { allowInsecureConnection: true });
}

/** The rows of a table whose keys contain a text, as the SDK sends them. */
async function rowsOf(storage: string, table: string, text: string): Promise<TableEntity[]> {
  const found: TableEntity[] = [];
  for await (const { etag: _, timestamp: __, ...entity } of openTable(storage, table).listEntities())
    if (`${entity.partitionKey} ${entity.rowKey}`.includes(text)) found.push(withTexts(entity as TableEntity));
  return found;
}

/** The row with its bytes as texts, which JSON keeps. */
function withTexts(row: TableEntity): TableEntity {
  const properties = Object.entries(row).map(([name, value]) =>
    value instanceof Uint8Array
      ? [name, { type: 'Binary', value: Buffer.from(value).toString('base64') }]
      : [name, value],
  );
  return Object.fromEntries(properties);
}

interface Copy {
  readonly to: string;
  readonly table: string;
  /** A text in the keys of the rows. */
  readonly only: string;
}

/** Copies rows of the product to a table of the plain code. */
async function copyRows(storage: string, from: string, { to, table, only }: Copy): Promise<TableEntity[]> {
  const rows = await rowsOf(storage, from, only);
  await pMap(rows, (row) => openTable(to, table).upsertEntity(row, 'Replace'), { concurrency: SEEDING_CONCURRENCY });
  return rows;
}
