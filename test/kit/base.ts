import {
  ENGINE_NAMES,
  FENCE_HEAD,
  KEY_NAMES,
  MARK_HEAD,
  SYSTEM_PARTITIONS,
  SYSTEM_ROWS,
  SYSTEM_TABLE,
} from '../../lib/base/engine-names.ts';
import { busy, DeclarationError, hasCode, NeverSucceeds, unavailable } from '../../lib/base/errors.ts';
import { jsonText } from '../../lib/base/json-text.ts';
import { findNotJson, MAX_BODY_DEPTH, MAX_JSON_DEPTH } from '../../lib/base/json-value.ts';
import { createPace } from '../../lib/base/pace.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/base/time.ts';
import { mapValues, omit, pick, WrongValue } from '../../lib/base/values.ts';

/** Plain values, time and errors (lib/base). */
export const baseValues = {
  DAY_MS,
  DeclarationError,
  ENGINE_NAMES,
  FENCE_HEAD,
  HOUR_MS,
  KEY_NAMES,
  MARK_HEAD,
  MAX_BODY_DEPTH,
  MAX_JSON_DEPTH,
  MINUTE_MS,
  NeverSucceeds,
  SYSTEM_PARTITIONS,
  SYSTEM_ROWS,
  SYSTEM_TABLE,
  WrongValue,
  busy,
  createPace,
  findNotJson,
  hasCode,
  jsonText,
  mapValues,
  omit,
  pick,
  unavailable,
} as const;
