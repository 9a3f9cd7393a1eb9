import { expect, test } from 'vitest';
import { defineModel } from '../../../../lib/define.ts';
import { httpDoor } from '../../../kit/http.ts';
import { access, entity } from './declarations.ts';

const define = (name: string) =>
  defineModel({ roles: ['hr'], operatorRole: 'hr', entities: [entity(name, { access })] });

test('a model has no entity with the name of a route of the API', () => {
  const routes = httpDoor.createRoutes(define('things')).filter((route) => route.entity === undefined);
  const names = new Set(['grants', ...routes.flatMap(({ path }) => path.split('/')[0] ?? [])]);
  // An entity name has no dot.
  names.delete('openapi.json');
  expect(names).toContain('query');
  for (const name of names) expect(() => define(name)).toThrow(`the API itself has a route /api/${name}.`);
});
