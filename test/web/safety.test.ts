import { describe, expect, test } from 'vitest';
import { toModel } from '../../web/src/api/model.ts';
import { findPreview, toLinkType } from '../../web/src/files/blob-types.ts';
import { findUndoObstacle } from '../../web/src/rows/undo-delete.ts';
import { loadOnce } from '../../web/src/ui/load-once.ts';
import { model as declared } from '../fixtures/model.ts';
import { httpDoor } from '../kit/http.ts';

const { entities } = toModel(httpDoor.describeModel(declared));

describe('the undo of a delete', () => {
  const can = (name: string, roles: string[], values = {}) => {
    const entity = entities.get(name);
    if (!entity) throw new Error(name);
    return findUndoObstacle(entity, { roles }, values) === undefined;
  };

  test('is offered if the page has all that was deleted', () => {
    expect(can('expenses', ['hr'], { amount: 3 })).toBe(true);
  });

  test('is not offered without the fields of a split', () => {
    const split = [...entities.values()].filter((each) => Object.keys(each.split).length > 0);
    expect(split.length).toBeGreaterThan(0);
    for (const entity of split)
      expect(findUndoObstacle({ ...entity, children: [], attachments: {} }, { roles: [...allRoles] }, {})).toMatch(
        /apart/,
      );
  });

  test('is not offered with an unreadable value, or to a role that does not read every field', () => {
    expect(can('expenses', ['hr'], { amount: null })).toBe(false);
    expect(can('expenses', [])).toBe(false);
  });

  const allRoles = new Set([...entities.values()].flatMap(({ access }) => [...access.read, ...access.write]));
});

describe('a stored file', () => {
  test.each([
    'text/html',
    'image/svg+xml',
    'image/svg+xml;charset=utf-8',
    'application/xhtml+xml',
    'application/pdf',
    '',
  ])('of type "%s" is saved when its link is opened', (type) =>
    expect(toLinkType(type)).toBe('application/octet-stream'),
  );

  test.each(['image/png', 'image/jpeg', 'audio/mpeg', 'video/mp4'])('of type "%s" keeps its type', (type) =>
    expect(toLinkType(type)).toBe(type),
  );

  test('is shown in the page only if it is an image, a sound or a video', () => {
    const types = ['image/svg+xml', 'image/png', 'audio/mpeg', 'video/mp4', 'text/html'];
    expect(types.map(findPreview)).toEqual(['image', 'image', 'audio', 'video', undefined]);
  });
});

test('loads a module once, and again after a failure', async () => {
  let loads = 0;
  const load = loadOnce(async () => {
    loads += 1;
    if (loads === 1) throw new Error('Failed to fetch');
    return 'module';
  });
  await expect(load()).rejects.toThrow('Failed to fetch');
  expect([await load(), await load(), loads]).toEqual(['module', 'module', 2]);
});
