import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  defineSeries,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../lib/define.ts';
import type { Entity } from '../kit/define.ts';

/** The entities of the benchmarks of growth. Each of their tables has one purpose. */

const text = z.string().min(1).max(100);
const id = z.string().regex(/^\d{7}$/);
const access = { read: ['reader'], write: ['reader'] } as const;

/** One partition that grows. */
export const residents = defineEntity('residents', {
  schema: z.object({ town: text, residentId: id, name: text, email: z.email(), street: text }),
  table: 'residents',
  key: { partition: '{town}', row: 'id_{residentId}' },
  indexes: {
    name: intraPartitionIndex({ row: 'name_{name}_{residentId}' }),
    email: interPartitionIndex({
      table: 'residentsbyemail',
      partition: '{email#}',
      row: '{email}',
      unique: true,
    }),
  },
  access,
});

/** Entities without any index, in one partition. */
const notes = defineEntity('notes', {
  schema: z.object({ board: text, noteId: id, text }),
  table: 'notes',
  key: { partition: '{board}', row: '{noteId}' },
  access,
});

/** Members of a list in another partition. */
const players = defineEntity('players', {
  schema: z.object({ team: text, playerId: id, town: text }),
  table: 'players',
  key: { partition: '{team}', row: '{playerId}' },
  indexes: {
    town: indexEntity({ table: 'playersbytown', partition: '{town}', row: 'ids', holds: '{team}/{playerId}' }),
  },
  access,
});

/** Entities whose number is a field of another entity of the partition. */
const voters = defineEntity('voters', {
  schema: z.object({ ward: text, voterId: id }),
  table: 'voters',
  key: { partition: '{ward}', row: 'voter_{voterId}' },
  access,
});
const wards = defineEntity('wards', {
  schema: z.object({ ward: text, voterCount: z.int32().optional() }),
  table: 'voters',
  key: { partition: '{ward}', row: 'ward' },
  counts: { voterCount: voters },
  access,
});

const visits = defineSeries('visits', {
  schema: z.object({ place: text, day: z.iso.date() }),
  table: 'visits',
  key: { partition: '{place}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  access,
});

export const model = defineModel({
  prefix: 'bench',
  roles: ['reader'],
  operatorRole: 'reader',
  entities: [residents, notes, players, voters, wards, visits],
});

/** The compiled declaration of an entity. */
export function toEntity(name: string): Entity {
  const entity = model.list.find((each) => each.name === name);
  if (!entity) throw new Error(`The model has no entity ${name}.`);
  return entity;
}
