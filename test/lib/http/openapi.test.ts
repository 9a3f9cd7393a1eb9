import { expect, test } from 'vitest';
import { openapiOf } from '../../../lib/http/openapi.ts';
import { routesOf } from '../../../lib/http/routes.ts';
import { deployment } from '../../../lib/model/deployment.ts';

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string }[];
}

const { paths } = openapiOf(routesOf(deployment));
const operations = Object.values(paths).flatMap((path) => Object.values(path) as Operation[]);

function taking(header: string): string[] {
  return operations
    .filter(({ parameters }) => parameters.some(({ name }) => name === header))
    .map(({ operationId }) => operationId)
    .filter((name) => /^(employees|messagehours|operations)-/.test(name))
    .sort();
}

test('conditions are described of the writes that heed them, and of no others', () => {
  const heeding = ['delete', 'patch', 'photo-delete', 'photo-put', 'replace'].map((verb) => `employees-${verb}`);
  expect(taking('If-Match')).toEqual(heeding);
  expect(taking('If-None-Match')).toEqual(heeding);
});
