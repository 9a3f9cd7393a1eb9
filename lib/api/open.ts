import pMap from 'p-map';
import { hiddenFields } from '../access/rule.ts';
import { RowkeyError } from '../base/errors.ts';
import { omit, pick, type Values } from '../base/values.ts';
import { withKeyOfReferences } from '../define/codec/select.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Page } from '../engine/read/retrieve.ts';
import { BlobGone } from '../engine/read/text-blobs.ts';
import { toPlain } from '../engine/write/stored-values.ts';
import type { View } from './operation.ts';

/** What is read is opened for a caller, over HTTP or in process: decrypted, and without the fields that the caller may not see. */

/** Decrypts and loads only the selected fields; all without `select`. Throws as `openValues` does. */
export async function openSelected(
  view: View,
  entity: Entity,
  values: Values,
  select: readonly string[] | undefined,
): Promise<Values> {
  if (!select) return await openValues(view, entity, values);
  return pick(await openValues(view, entity, pick(values, withKeyOfReferences(entity, select))), select);
}

/** Opens a page that was read from storage, with only the selected fields. */
export async function openPage(
  view: View,
  entity: Entity,
  { items, next }: Page,
  select?: readonly string[],
): Promise<Page> {
  if (!select) return { items: await openList(view, entity, items), next };
  const read = withKeyOfReferences(entity, select);
  const list = await openList(
    view,
    entity,
    items.map((values) => pick(values, read)),
  );
  return { items: list.map((values) => pick(values, select)), next };
}

const OPEN_CONCURRENCY = 8;
const READ_ATTEMPTS = 4;

/** Decrypts fields and loads texts from blobs. Throws `needs-repair`, which names the first field that fails. */
export function openValues(view: View, entity: Entity, values: Values): Promise<Values> {
  return open(view, entity, values, (field) => {
    throw new RowkeyError('needs-repair', `"${field}" of an entity of ${entity.name} cannot be read.`, {
      field,
    });
  });
}

/**
 * Opens the values, with null for a field that fails, so that it hides neither other entities nor the success of a write. A field
 * without a value is absent, and writes reject null, so null is unambiguous.
 */
export function openWithGaps(view: View, entity: Entity, values: Values): Promise<Values> {
  return open(view, entity, values, () => null);
}

/** Opens the values of each entity of a list with `openWithGaps`. Keeps the order. */
export function openList(view: View, entity: Entity, list: readonly Values[]): Promise<Values[]> {
  return pMap(list, (values) => openWithGaps(view, entity, values), { concurrency: OPEN_CONCURRENCY });
}

/** Throws `BlobGone` if the blob may only have been replaced. */
function open(view: View, entity: Entity, values: Values, onFailure: (field: string) => null): Promise<Values> {
  const { engine, caller, isLastAttempt } = view;
  // Omitted before anything is decrypted or loaded.
  const hidden = caller ? hiddenFields(entity, caller) : [];
  return toPlain(engine, entity, hidden.length === 0 ? values : omit(values, hidden), (field, error) => {
    if (error instanceof BlobGone && !isLastAttempt) throw error;
    return onFailure(field);
  });
}

/** Reads the row again if its blob was replaced meanwhile. Throws `needs-repair` if the blob is missing every time. */
export async function rereadIfBlobGone<Result>(
  subject: string,
  read: (isLastAttempt: boolean) => Promise<Result>,
  { attempts = READ_ATTEMPTS }: { readonly attempts?: number | undefined } = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    const isLastAttempt = attempt >= attempts;
    try {
      return await read(isLastAttempt);
    } catch (error) {
      if (!(error instanceof BlobGone)) throw error;
      if (isLastAttempt) throw new RowkeyError('needs-repair', `${subject}: a blob is lost.`, { cause: error });
    }
  }
}
