/** Each function returns the text of a file that `npm run init` writes instead of the examples. */

export function formatEntityFile(name: string): string {
  return `import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../lib/define.ts';

/** Your first entity. Change it, or copy it for the next one: docs/declare-an-entity.md explains every part. */
export const ${name} = defineEntity('${name}', {
  schema: z.object({
    owner: z.string().min(1).max(100),
    id: z.uuid().default(() => crypto.randomUUID()),
    title: z.string().min(1).max(200),
    text: z.string().max(2_000).optional(),
  }),
  table: '${name}',
  key: { partition: '{owner}', row: '{id}' },
  indexes: {
    title: interPartitionIndex({ table: '${name}bytitle', partition: '{title}', row: '{owner}_{id}' }),
  },
  access: { read: ['reader', 'editor'], write: ['editor'] },
});
`;
}

export function formatEntityTestFile(name: string): string {
  return `import { expect, test } from 'vitest';
import { model } from './model.ts';

test('the model has ${name}', () => {
  expect(model.entities.${name}.keyFields).toEqual(['owner', 'id']);
});
`;
}

/** Adds the line of an entity at the beginning of the list of entities. */
export function addEntity(list: string, name: string): string {
  const [comment, ...lines] = list.split('\n');
  return [comment, `export { ${name} } from './${name}.ts';`, ...lines].join('\n');
}

export function formatReadmeFile(name: string): string {
  return `# A Rowkey app

[model](model) declares the entities, at first only [${name}](model/${name}.ts). Keys, indexes, routes, validation, OpenAPI, tables and queues follow
from the declaration. [docs](docs/README.md) has the rest.

\`\`\`sh
npm ci
npm start            # everything on this machine; prints the address of the console and commands to try
npm test             # lint, types and every test
npm run infra        # after a change of the model: writes its tables to infra/model.json
\`\`\`

The [console](docs/console.md) shows and edits the data of every entity. Sign in to it with the role \`editor\`, which writes
[${name}](model/${name}.ts), or with \`reader\`, which only reads; \`operator\` has pages for running the app.
[model/model.ts](model/model.ts) declares the roles.

Before you push, run what CI runs:

\`\`\`sh
npm cit
\`\`\`

To add an entity, write a file like [${name}.ts](model/${name}.ts) and add its line to [entities.ts](model/entities.ts).

## License

[MIT](LICENSE)
`;
}

/** The page on deploying, with the roles of the model and a first row of the entity. */
export function addressToStarter(page: string, name: string): string {
  return page
    .replaceAll("value=='hr'", "value=='editor'")
    .replaceAll('/api/employees', `/api/${name}`)
    .replace(/-d '\{"department":[^']*'/, `-d '{"owner":"ann","title":"First"}'`);
}

export function formatModelFile(): string {
  return `import { defineModel } from '../lib/define.ts';
import * as entities from './entities.ts';

/** The model of this app: its routes, tables and description follow from it. */
export const model = defineModel({
  roles: ['reader', 'editor', 'operator'],
  operatorRole: 'operator',
  entities: Object.values(entities).flat(),
});
`;
}
