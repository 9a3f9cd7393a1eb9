import { z } from 'zod';
import { defineEntity, defineModel, defineOperation, defineSeries, indexEntity, total } from '../../lib/define.ts';
import { createRoutes } from '../../lib/http/routes.ts';

const access = { read: ['member'], write: ['member'] } as const;
const text = z.string().min(1);

/** An entity with everything that has routes. */
const tools = defineEntity('tools', {
  schema: z.object({ shed: text, toolId: z.uuid(), kind: text, weight: z.number().optional() }),
  table: 'tools',
  key: { partition: '{shed}', row: 'tool_{toolId}' },
  indexes: { kind: indexEntity({ row: 'kind_{kind}', holds: '{toolId}' }) },
  totals: { perKind: total({ table: 'toolsperkind', partition: '{kind}', row: '{shed}', sum: ['weight'] }) },
  attachments: { photo: { container: 'photos', maxBytes: 1_000_000, types: ['image/jpeg'] } },
  archive: { table: 'formertools' },
  movable: ['shed'],
  access,
});
const visits = defineSeries('visits', {
  schema: z.object({ shed: text, day: z.iso.date() }),
  table: 'visits',
  key: { partition: '{shed}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  span: { field: 'day', per: 'day' },
  access,
});
const lend = defineOperation('lend', {
  summary: 'An operation of the app',
  kind: 'write',
  roles: ['member'],
  input: z.object({}),
  output: z.object({}),
});
const model = defineModel({
  roles: ['member', 'operator'],
  operatorRole: 'operator',
  blocksUsers: true,
  entities: [tools, visits],
  operations: [lend],
});

/** Returns the text of docs/reference/routes.md. */
export function formatRoutes(): string {
  const rows = createRoutes(model)
    .filter(({ isUndescribed }) => !isUndescribed)
    .map(({ method, path, summary }) => ({ method, path: `/api/${path}`, summary }))
    .toSorted((one, other) => (one.path < other.path ? -1 : one.path > other.path ? 1 : 0));
  return `# Routes

Every route of an app that stores \`tools\` in sheds, with an index \`kind\`, totals \`perKind\`, a file \`photo\`, an archive and a move; a series \`visits\`; and an operation \`lend\`.
[HTTP API](http.md) explains them, and \`/api/openapi.json\` of an app describes its own. \`npm run reference\` writes this page.

| Route | | |
|---|---|---|
${rows.map(({ method, path, summary }) => `| \`${path}\` | ${method} | ${summary} |`).join('\n')}
`;
}
