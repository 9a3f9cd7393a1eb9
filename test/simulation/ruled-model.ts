import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, oneOf, own, subject } from '../../lib/define.ts';
import { expenses, members } from '../rules/groups-model.ts';

/** The app of groups, with what rules meet later or elsewhere: archives and moves, transactions over entities, a value that a caller's own entity may lack, and tables of days. */

const id = z.string().min(1);
const digits = z.string().regex(/^[0-9]+$/);

/** Their archives and moves run after the request, when the rules may no longer allow them. */
const notes = defineEntity('notes', {
  schema: z.object({
    groupId: id,
    noteId: id,
    userId: id,
    status: z.enum(['draft', 'final']),
    text: z.string().optional(),
  }),
  table: 'notes',
  key: { partition: '{groupId}', row: 'note_{noteId}' },
  archive: { table: 'formernotes' },
  movable: ['groupId'],
  access: {
    read: ['auditor', { role: 'user', where: { userId: subject() }, lists: 'filtered' }],
    write: ['auditor', { role: 'user', where: { userId: subject(), status: oneOf('draft') } }],
  },
});

/** Users read them, and do not write them. */
const notices = defineEntity('notices', {
  schema: z.object({ groupId: id, noticeId: id }),
  table: 'notes',
  key: { partition: '{groupId}', row: 'notice_{noticeId}' },
  access: { read: ['auditor', 'user'], write: ['auditor'] },
});

const people = defineEntity('people', {
  schema: z.object({ site: id, personId: id, userId: id, team: z.enum(['red', 'blue']).optional() }),
  table: 'people',
  key: { partition: '{site}', row: 'person_{personId}' },
  indexes: {
    userId: interPartitionIndex({ table: 'peoplebyuser', partition: '{userId}', row: 'person', unique: true }),
  },
  access: { read: ['auditor'], write: ['auditor'], own: { claim: 'sub', index: 'userId' } },
});

/** The user moves them with their papers, which the rules of papers must allow, too. */
const folders = defineEntity('folders', {
  schema: z.object({ groupId: id, folderId: digits, userId: id }),
  table: 'folders',
  key: { partition: '{groupId}', row: 'folder_{folderId}' },
  movable: ['groupId'],
  access: { read: ['auditor', 'user'], write: ['auditor', { role: 'user', where: { userId: subject() } }] },
});

const papers = defineEntity('papers', {
  schema: z.object({ groupId: id, folderId: digits, paperId: id, status: z.enum(['draft', 'final']) }),
  table: 'folders',
  key: { partition: '{groupId}', row: 'folder_{folderId}_{paperId}' },
  childOf: folders,
  access: {
    read: ['auditor', 'user'],
    write: {
      create: ['auditor', { role: 'user', where: { status: oneOf('draft') } }],
      update: ['auditor'],
      delete: ['auditor', 'user'],
    },
  },
});

/** Those of the team of the user's own entity. A board and a person without a team are of no team. */
const boards = defineEntity('boards', {
  schema: z.object({ site: id, boardId: id, team: z.enum(['red', 'blue']).optional() }),
  table: 'boards',
  key: { partition: '{site}', row: 'board_{boardId}' },
  access: {
    read: ['auditor', { role: 'user', where: { team: own(people, 'team') }, lists: 'filtered' }],
    write: ['auditor'],
  },
});

const visits = defineEntity('visits', {
  schema: z.object({ groupId: id, at: z.iso.datetime(), visitId: id, text: z.string().optional() }),
  table: 'visits',
  key: { partition: '{groupId}', row: '{at}_{visitId}' },
  period: { per: 'day', field: 'at', keep: 60, archiveTo: 'blob' },
  access: { read: ['auditor'], write: ['auditor'] },
});

export const ruledModel = defineModel({
  roles: ['user', 'payer', 'auditor', 'operator'],
  operatorRole: 'operator',
  entities: [members, expenses, notes, notices, folders, papers, people, boards, visits],
});
