import { acceptedBound, reasonNotToFilter } from '../codec/query.ts';
import { checkText, validateRequired } from '../codec/validation.ts';
import { type Action, type Alternative, hasTerms, type Scalar, type Term } from '../declaration/access.ts';
import type { Entity } from '../declaration/entity.ts';
import { buildKey } from '../keys/key-template.ts';
import { listingAlternatives, memberField, membershipsIn } from '../places/reach.ts';
import { fieldSchemas } from '../schema/field-schema.ts';
import { compareInstants } from '../schema/instants.ts';
import { ISSUED_CLAIMS, keepsExactly } from './validate-entity.ts';

/** Yields the errors of the rules on rows of an entity. */
export function* ruleErrors(entity: Entity): Generator<string> {
  const { rules, unveiled = {}, set = {} } = entity.access;
  yield* setErrors(entity, set);
  for (const [field, rule] of Object.entries(unveiled)) {
    for (const { role, where = {} } of rule)
      for (const [compared, term] of Object.entries(where))
        for (const error of termErrors(entity, 'read', compared, term))
          yield `the rule to read "${field}" of the role "${role}" compares "${compared}", ${error}`;
    if (Object.hasOwn(entity.attachments, field) || entity.lookup || entity.maxAge !== undefined)
      yield `the restricted field "${field}" has rules, and a ${entity.lookup ? 'list in memory (lookup)' : entity.maxAge === undefined ? 'file' : 'response with maxAge'} is the same for all callers of a role. Name roles without terms.`;
  }
  if (!rules) return;
  for (const [action, rule] of Object.entries(rules) as [Action, (typeof rules)[Action]][])
    for (const alternative of rule)
      for (const [field, term] of Object.entries(alternative.where ?? {})) {
        const what = `the rule to ${action} of the role "${alternative.role}"`;
        for (const error of termErrors(entity, action, field, term)) yield `${what} compares "${field}", ${error}`;
      }
  if (entity.isWrittenByClients && Object.values(rules).some((rule) => rule.some(hasTerms)))
    yield 'clients may write it straight to storage (access.own), where no rule is checked. Grant only r, or remove the rules.';
  if (entity.series && rules.update.some(({ transition }) => transition))
    yield 'the rule to update has before and after, and a data series has no field that an update changes. Use one rule.';
  if (rules.read.some(hasTerms)) yield* readErrors(entity);
  for (const alternative of rules.read) yield* listErrors(entity, alternative);
}

/** Yields the errors of the fields that a create takes from the caller. */
function* setErrors(entity: Entity, set: NonNullable<Entity['access']['set']>): Generator<string> {
  for (const [field, term] of Object.entries(set)) {
    const what = `access.set names "${field}"`;
    for (const error of termErrors(entity, 'create', field, term)) yield `${what}, ${error}`;
    if ([...entity.movable, ...(entity.childOf?.movable ?? [])].includes(field))
      yield `${what}, which a move changes. Remove it from movable, or from access.set.`;
    if (Object.hasOwn(entity.derived, field)) yield `${what}, which is derived from other fields. Name another field.`;
    if (Object.hasOwn(entity.defaults, field)) yield `${what}, which has a default (defaults). Remove one of them.`;
    if (entity.isWrittenByClients)
      yield `${what}, and clients may write the rows straight to storage (access.own), where nothing sets it. Grant only r.`;
    if (entity.series || entity.union)
      yield `${what}, and ${entity.series ? 'a data series is never created' : 'an entity of several kinds cannot have such fields'}. Remove access.set.`;
  }
}

/** Yields the ends of sentences. */
function* termErrors(entity: Entity, action: Action, field: string, term: Term<Entity>): Generator<string> {
  if (!Object.hasOwn(entity.columns, field)) {
    yield 'which the schema does not have. Add it to the schema, or correct the name.';
    return;
  }
  const reason = reasonNotToFilter(entity, field);
  if (reason) {
    yield `which ${reason}. Compare another field.`;
    return;
  }
  if ((action === 'create' || action === 'update') && entity.keptFields.includes(field))
    yield 'which the engine sets after the rule is checked. Compare a field that callers write.';
  for (const value of constantsOf(term))
    if (!isValueOf(entity, field, value))
      yield `which cannot be ${JSON.stringify(value)}. Use a value that its schema accepts.`;
  if (typeof term !== 'object') return;
  const isText = entity.columns[field] === 'String';
  if (term.is === 'between') yield* boundErrors(entity, field, term);
  if (term.is === 'prefix' && term.prefix === '')
    yield 'with an empty prefix, with which every text begins. Give a prefix, or remove the term.';
  if (term.is === 'prefix' && !isText) yield 'which is not a text, and only texts have a prefix. Use between.';
  if (term.is === 'subject' && (!isText || !keepsExactly(entity, field)))
    yield 'whose schema may store two subjects as one value, so one caller would be the other. Declare it as a text, and remove toLowerCase, trim, transform, catch, default and derived from it.';
  const format = fieldSchemas(entity.schema)[field]?.format ?? '';
  if (term.is === 'subject' && NO_SUBJECTS.includes(format))
    yield `which is a ${format}, and no subject is one. Compare a text.`;
  if (term.is === 'claim' && !term.verifiedBy && !ISSUED_CLAIMS.includes(term.claim))
    yield `with the claim "${term.claim}", which the issuer may not have verified. Name the claims that say so in verifiedBy, or set it to {} if the issuer verifies every value.`;
  if (term.is === 'own') yield* ownErrors(entity, field, term);
  if (term.is === 'member') yield* memberErrors(entity, field, term);
}

/** Formats that no subject of an issuer has. */
const NO_SUBJECTS = ['date', 'time', 'date-time', 'duration'];

function constantsOf(term: Term<Entity>): readonly Scalar[] {
  if (typeof term !== 'object') return [term];
  return term.is === 'one of' ? term.values : [];
}

function isValueOf(entity: Entity, field: string, value: Scalar): boolean {
  try {
    checkText(field, value, entity.keyFields.includes(field));
    for (const template of [entity.partition, entity.row])
      buildKey({ ...template, parts: template.parts.filter((part) => part.field === field) }, { [field]: value });
    return validateRequired(entity, { [field]: value }, [field])[field] === value;
  } catch {
    return false;
  }
}

function* boundErrors(entity: Entity, field: string, { from, to }: TermOf<'between'>): Generator<string> {
  const type = entity.columns[field];
  const bounds = `${JSON.stringify(from)} and ${JSON.stringify(to)}`;
  if (type === 'Boolean') {
    yield `which is true or false and has no order. Use the value itself instead of bounds.`;
    return;
  }
  const isText = type === 'String';
  if ([from, to].some((bound) => typeof bound !== (isText ? 'string' : 'number'))) {
    yield `which has another type than the bounds ${bounds}. Use two ${isText ? 'texts' : 'numbers'}.`;
    return;
  }
  for (const bound of [from, to]) {
    const accepted = acceptedBound(entity, field, bound);
    if (accepted !== undefined) yield `with the bound ${JSON.stringify(bound)}. Use ${accepted}.`;
  }
  // Other texts are compared by code unit, as storage does.
  const isInstant = fieldSchemas(entity.schema)[field]?.format === 'date-time';
  if (isInstant ? compareInstants(String(from), String(to)) > 0 : from > to)
    yield `with the bounds ${bounds} in the wrong order, between which no value is. Exchange them.`;
}

type TermOf<Is> = Extract<Term<Entity>, { is: Is }>;

function* ownErrors(
  entity: Entity,
  field: string,
  { of = entity, field: by = field }: TermOf<'own'>,
): Generator<string> {
  if (!of.access.own || !('claim' in of.access.own))
    yield `with the caller's own entity of "${of.name}", which has none. Give it access.own with a claim and an index.`;
  if (!Object.hasOwn(of.columns, by))
    yield `with "${by}" of "${of.name}", which its schema does not have. Name the field: own(${of.name}, '…').`;
  else if (of.columns[by] !== entity.columns[field])
    yield `with "${by}" of "${of.name}", which is stored as another type. Compare fields of one type.`;
}

function* memberErrors(entity: Entity, field: string, { of, field: by, where }: TermOf<'member'>): Generator<string> {
  const named = Object.keys(where).find((name) => !Object.hasOwn(of.columns, name));
  if (named !== undefined)
    yield `with rows of "${of.name}" by "${named}", which its schema does not have. Correct the name.`;
  for (const [name, value] of Object.entries(where))
    if (Object.hasOwn(of.columns, name) && !isValueOf(of, name, value))
      yield `with rows of "${of.name}" whose "${name}" is ${JSON.stringify(value)}, which no row has. Use a value that its schema accepts.`;
  // A client with such a grant would choose the groups whose rows it reaches.
  const { own } = of.access;
  if (own && 'through' in own && /[au]/.test(own.permissions))
    yield `with memberships in "${of.name}", which clients add or change straight in storage (access.own of "${of.name}" has the permissions "${own.permissions}"), so a caller could join any group. Leave a and u out of the permissions of access.own.`;
  const user = memberField(of, by);
  if (user === undefined) {
    yield `with memberships in "${of.name}", whose key is not "${by}" and the caller. Let its key have these two fields. The owner of a group is a member too, told by a field: memberOf(${of.name}, '${by}', { role: 'owner' }).`;
    return;
  }
  if (of.columns[by] !== entity.columns[field])
    yield `with "${by}" of "${of.name}", which is stored as another type. Compare fields of one type.`;
  if (of.columns[user] !== 'String' || !keepsExactly(of, user))
    yield `with memberships in "${of.name}", whose "${user}" may store two subjects as one value. Declare it as a text, and remove toLowerCase, trim, transform, catch, default and derived from it.`;
  if (!membershipsIn(of, by, [by, ...Object.keys(where)]))
    yield `with memberships in "${of.name}", and no partition has all of a caller. Declare an index there, such as ${of.name}By${capitalize(user)}: interPartitionIndex({ table: '${of.name}by${user.toLowerCase()}', partition: '{${user}}', row: '{${by}}' }).`;
}

/** Yields what would show rows past the rules. */
function* readErrors(entity: Entity): Generator<string> {
  const { maxAge, attachments } = entity;
  if (maxAge !== undefined)
    yield 'maxAge lets a browser show one caller what it keeps of another, whose rules differ. Remove maxAge.';
  for (const [name, { public: isPublic, maxAge: kept }] of Object.entries(attachments)) {
    if (kept !== undefined)
      yield `the attachment "${name}" has maxAge, and a browser may show one caller what it keeps of another. Remove maxAge.`;
    if (isPublic) yield `the attachment "${name}" is public, and rules limit who reads its entity. Remove public.`;
  }
}

/** Yields an error if the role can list nothing. */
function* listErrors(entity: Entity, alternative: Alternative<string, Entity>): Generator<string> {
  const { role, where = {}, lists = 'bounded' } = alternative;
  if (lists === 'none' || !hasTerms(alternative) || entity.series) return;
  const indexes = Object.values(entity.indexes);
  if ([undefined, ...indexes].some((index) => listingAlternatives(entity, index).includes(alternative))) return;
  const fields = Object.keys(where);
  const [first = ''] = fields;
  const rest = entity.keyFields.filter((name) => name !== first).map((name) => `{${name}}`);
  const index = `by${capitalize(first)}: interPartitionIndex({ table: '${entity.name}by${first.toLowerCase()}', partition: '{${first}}', row: '${rest.join('_')}' })`;
  yield `the rule to read of the role "${role}" bounds no list: no partition key consists of ${fields.join(', ')}, and no row key begins with ${fields.length > 1 ? 'one of them' : 'it'}. Declare an index, such as ${index}, or say lists: 'filtered' (lists read whole partitions) or lists: 'none' in the rule.`;
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
