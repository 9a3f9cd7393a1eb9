import { fieldsToProperties, toProperties, toSnapshot, toValues } from '../../lib/define/codec/entity-codec.ts';
import { FURTHER_GROUP, joinRows, parseFurtherRowKey } from '../../lib/define/codec/further-rows.ts';
import { isWithin } from '../../lib/define/codec/limit.ts';
import { askedFields, compileFilter, matches, toSelection } from '../../lib/define/codec/query.ts';
import { parse, textToValue, validate, withDerived, writableSchema } from '../../lib/define/codec/validation.ts';
import { OPERATORS } from '../../lib/define/declaration/comparison.ts';
import { parseCell } from '../../lib/define/declaration/csv-value.ts';
import { resolveDeclared, withDefaults } from '../../lib/define/declaration/declaration.ts';
import { canWriteThroughGrant, formerOf, withArchives } from '../../lib/define/declaration/entity.ts';
import { ModelDescription } from '../../lib/define/declaration/model-description.ts';
import { compileEntity } from '../../lib/define/define-entity.ts';
import { linkEntities, linkEntity } from '../../lib/define/define-model.ts';
import { slotLength } from '../../lib/define/define-series.ts';
import { periodOf } from '../../lib/define/keys/calendar.ts';
import {
  buildKey,
  buildKeys,
  compileTemplate,
  keyRange,
  MAX_KEY_LENGTH,
  parseKey,
  rangeOfPrefix,
} from '../../lib/define/keys/key-template.ts';
import {
  addressOf,
  CLAIM,
  copyProperties,
  indexEntriesOf,
  isIndexed,
  isRowAt,
  projectionsOf,
  shapesOf,
  tablesOf,
} from '../../lib/define/places/index-entries.ts';
import { indexFields, isOfMany } from '../../lib/define/places/index-range.ts';
import { layersOf } from '../../lib/define/places/placement.ts';
import { isSlow } from '../../lib/define/schema/slow-pattern.ts';
import { implies } from '../../lib/define/validate/disclosure.ts';

export type { Term } from '../../lib/define/declaration/access.ts';
export type { Entity, Linked } from '../../lib/define/declaration/entity.ts';
export { Finding } from '../../lib/define/declaration/finding.ts';
export type { CopyIndex } from '../../lib/define/declaration/indexes.ts';
export type { LinkedModel, Model } from '../../lib/define/define-model.ts';
export type { CalendarUnit } from '../../lib/define/keys/calendar.ts';

/** Values as rows, filters and validation (lib/define/codec). */
export const defineCodec = {
  FURTHER_GROUP,
  askedFields,
  compileFilter,
  fieldsToProperties,
  isWithin,
  joinRows,
  matches,
  parse,
  parseFurtherRowKey,
  textToValue,
  toProperties,
  toSelection,
  toSnapshot,
  toValues,
  validate,
  withDerived,
  writableSchema,
} as const;

/** Key templates and the calendar (lib/define/keys). */
export const defineKeys = {
  MAX_KEY_LENGTH,
  buildKey,
  buildKeys,
  compileTemplate,
  keyRange,
  parseKey,
  periodOf,
  rangeOfPrefix,
} as const;

/** Where the rows and index entries of an entity are (lib/define/places). */
export const definePlaces = {
  CLAIM,
  addressOf,
  copyProperties,
  indexEntriesOf,
  indexFields,
  isIndexed,
  isOfMany,
  isRowAt,
  layersOf,
  projectionsOf,
  shapesOf,
  tablesOf,
} as const;

/** Declarations, as they are compiled and linked (the rest of lib/define). */
export const modelParts = {
  ModelDescription,
  OPERATORS,
  canWriteThroughGrant,
  compileEntity,
  formerOf,
  implies,
  isSlow,
  linkEntities,
  linkEntity,
  parseCell,
  resolveDeclared,
  slotLength,
  withArchives,
  withDefaults,
} as const;
