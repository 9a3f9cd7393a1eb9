import { constants } from 'node:buffer';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { maxBodyBytesOf } from '../../lib/http/request-body.ts';

/** JSON in ASCII takes up to three times the bytes of UTF-8: `\\u00e9` for two bytes, and twelve bytes for four. */
const ASCII_JSON = 3;
const BASE64 = 4 / 3;

/** The most bytes of a row that the API may accept, with its files. A row is read into memory as a whole. */
export function maxRowBytes(entity: Entity): number {
  const files = Object.values(entity.attachments).reduce((sum, { maxBytes }) => sum + maxBytes, 0);
  return Math.min(Math.ceil(ASCII_JSON * maxBodyBytesOf(entity) + BASE64 * files), constants.MAX_STRING_LENGTH);
}
