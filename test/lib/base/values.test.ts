import { expect, test } from 'vitest';
import { model } from '../../fixtures/model.ts';
import { modelParts } from '../../kit/define.ts';

const INHERITED = Object.getOwnPropertyNames(Object.prototype);

test.each(modelParts.withArchives(model.list).map((entity) => [entity.name, entity] as const))(
  'no compiled record of %s returns a property inherited from Object',
  (_, entity) => {
    const { columns, indexes, derived, counts, attachments, upgrades } = entity;
    const records: Record<string, Record<string, unknown>> = {
      columns,
      indexes,
      derived,
      counts,
      attachments,
      upgrades,
    };
    for (const [name, record] of Object.entries(records))
      expect(
        INHERITED.filter((inherited) => inherited in record),
        name,
      ).toEqual([]);
  },
);
