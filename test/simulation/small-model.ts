import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, intraPartitionIndex, total } from '../../lib/define.ts';

/** A model with few forms, whose entities therefore meet often: an index, a unique one, one whose entries the writer leaves to the queue, a total, and what a move changes. */

/** The role whose reads are in the audit log. */
export const STEWARD = 'steward';

const access = { read: ['writer'], write: ['writer'] } as const;
const text = z.string().min(1);
const id = z.string().regex(/^[0-9]$/);

const guest = {
  schema: z.object({ city: id, id, name: text }),
  table: 'guests',
  key: { partition: '{city}', row: '{id}' },
  indexes: { name: interPartitionIndex({ table: 'guestsbyname', partition: '{name}', row: '{city}_{id}' }) },
  access,
};

const cars = defineEntity('cars', {
  schema: z.object({ city: id, id, plate: text }),
  table: 'cars',
  key: { partition: '{city}', row: '{id}' },
  indexes: { plate: interPartitionIndex({ table: 'carsbyplate', partition: '{plate}', row: 'car', unique: true }) },
  access: { ...access, own: { claim: 'sub', index: 'plate' } },
});

/** Its keys may begin as those of the rows of a move. */
const films = defineEntity('films', {
  schema: z.object({ year: id, id, title: text, stars: id.optional() }),
  table: 'films',
  key: { partition: '{year}', row: '{title}_{id}' },
  indexes: { stars: interPartitionIndex({ table: 'filmsbystars', partition: '{stars}', row: '{title}_{year}_{id}' }) },
  access,
});

const ticket = {
  schema: z.object({ team: id, id, owner: text, topic: text }),
  table: 'tickets',
  key: { partition: '{team}', row: '{id}' },
  indexes: {
    owner: interPartitionIndex({ table: 'ticketsbyowner', partition: '{owner}', row: '{team}_{id}' }),
    topic: interPartitionIndex({
      table: 'ticketsbytopic',
      partition: '{topic}',
      row: '{team}_{id}',
      settle: 'queue',
    }),
  },
  access,
};

const sale = {
  schema: z.object({ city: id, id, product: text, amount: z.int32().min(1).max(9) }),
  table: 'sales',
  key: { partition: '{city}', row: '{id}' },
  totals: {
    byProduct: total({
      table: 'salesbyproduct',
      partition: '{product}',
      row: 'all',
      sum: ['amount'],
      max: ['amount'],
    }),
  },
  access,
};

/** A copy in the partition, which a transaction deletes, and a derived field, which a move changes. */
const books = defineEntity('books', {
  schema: z.object({ shelf: id, id, author: text.optional(), label: z.string().optional() }),
  table: 'books',
  key: { partition: '{shelf}', row: 'book_{id}' },
  derived: { label: ({ shelf, author }) => (author === undefined ? undefined : `${shelf}${author}`) },
  indexes: {
    author: intraPartitionIndex({ row: 'by_{author}_{id}' }),
    label: interPartitionIndex({ table: 'booksbylabel', partition: '{label}', row: '{shelf}_{id}' }),
  },
  movable: ['shelf'],
  access,
});

const given = { roles: ['writer', 'operator', STEWARD], operatorRole: 'operator', steward: STEWARD } as const;

export const smallModel = defineModel({
  ...given,
  entities: [
    defineEntity('guests', guest),
    cars,
    films,
    defineEntity('tickets', ticket),
    defineEntity('sales', sale),
    books,
  ],
});

/** The release before, which lacks what is built from the entities that it wrote. */
export const formerModel = defineModel({
  ...given,
  entities: [
    defineEntity('guests', { ...guest, indexes: {} }),
    cars,
    films,
    defineEntity('tickets', { ...ticket, indexes: { owner: ticket.indexes.owner } }),
    defineEntity('sales', { ...sale, totals: {} }),
    books,
  ],
});
export const BUILT = ['guests/name', 'tickets/topic', 'sales/byProduct'];
