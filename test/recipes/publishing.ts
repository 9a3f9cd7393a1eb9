import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, subject } from '../../lib/index.ts';

const isAuthor = { authorId: subject() };

const posts = defineEntity('posts', {
  schema: z.object({
    authorId: z.string(),
    postId: z.string(),
    status: z.enum(['draft', 'published']),
    publishedAt: z.iso.datetime({ precision: 3 }),
    title: z.string(),
  }),
  table: 'posts',
  key: { partition: '{authorId}', row: 'post_{postId}' },
  indexes: {
    // What everybody reads, the newest first.
    status: interPartitionIndex({
      table: 'postsbystatus',
      partition: '{status}',
      row: '{publishedAt~}_{authorId}_{postId}',
    }),
  },
  access: {
    read: [
      { role: 'visitor', where: { status: 'published' } },
      { role: 'user', where: { status: 'published' } },
      { role: 'user', where: isAuthor },
    ],
    write: [{ role: 'user', where: isAuthor }],
    set: { authorId: subject() },
  },
});

export const model = defineModel({
  roles: ['visitor', 'user', 'operator'],
  operatorRole: 'operator',
  signedIn: 'user',
  anyone: 'visitor',
  entities: [posts],
});
