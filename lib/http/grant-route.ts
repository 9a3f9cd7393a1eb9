import { z } from 'zod';
import { GrantRequest, grantFor, requireGrantable } from '../access/grant.ts';
import { RowkeyError } from '../errors.ts';
import type { Entity } from '../patterns/entity.ts';
import { addressOf } from '../patterns/places.ts';
import { parse } from '../patterns/validation.ts';
import { rowUrl } from '../storage/table-sas-signer.ts';
import { readOwn } from './own.ts';
import type { Answer, Call, Route } from './route.ts';

const Grant = z.object({
  url: z.url().describe('Of the row; add the token as its query'),
  token: z.string(),
  permissions: z.string(),
  expiresAt: z.iso.datetime(),
});

/** Shared access signatures pattern: a token with which a client reads its own entity straight from storage. */
export function grantRoute(entities: readonly Entity[]): Route {
  const granting = entities.filter((entity) => entity.access.own);
  return {
    name: 'grants-create',
    method: 'POST',
    path: 'grants',
    roles: [...new Set(granting.flatMap((entity) => entity.access.read))],
    summary: "A shared access signature for the caller's own entity",
    requestBody: GrantRequest,
    success: { status: 201, description: 'The grant', body: Grant },
    handle: (call) => issue(granting, call),
  };
}

async function issue(granting: readonly Entity[], call: Call): Promise<Answer> {
  const { app } = call;
  const asked = parse(GrantRequest, await call.json());
  const entity = granting.find(({ name }) => name === asked.entity);
  const accepted = granting.map(({ name }) => name).join(', ');
  if (!entity?.access.own)
    throw new RowkeyError('invalid-input', 'No grant is given for this entity.', { field: 'entity', accepted });
  requireGrantable(entity, asked.permissions);
  const own = await readOwn(call, entity);
  const grant = grantFor(entity, addressOf(entity, own), app.engine.now());
  const token = await app.signer().sign(grant);
  const body = {
    url: rowUrl(app.engine.storage, addressOf(entity, own)),
    token,
    permissions: grant.permissions,
    expiresAt: grant.expiresAt,
  };
  return { status: 201, headers: { 'cache-control': 'no-store' }, body };
}
