import { authenticate } from './access/token.ts';
import type { App } from './http/route.ts';
import { deployment } from './model/deployment.ts';
import { type AuditLog, createAuditLog } from './patterns/audit-log.ts';
import type { Consumer } from './patterns/consume.ts';
import { createEngine, type Engine } from './patterns/engine.ts';
import type { Log } from './patterns/poison.ts';
import { appStorage } from './storage/storage.ts';
import { type TableSasSigner, tableSasSigner } from './storage/table-sas-signer.ts';

/** What the functions work with, put together at the first call: loading the app opens nothing and cannot fail. */

let engine: Engine | undefined;
let audit: AuditLog | undefined;
let signer: TableSasSigner | undefined;

export function appEngine(): Engine {
  engine ??= createEngine(appStorage());
  return engine;
}

export function app(): App {
  audit ??= createAuditLog(appEngine());
  return { engine: appEngine(), entities: deployment, signer: appSigner, authenticate, audit };
}

export function consumer(log: Log): Consumer {
  return { engine: appEngine(), entities: deployment, log };
}

function appSigner(): TableSasSigner {
  signer ??= tableSasSigner(appStorage());
  return signer;
}
