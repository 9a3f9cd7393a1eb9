import { format, Validator } from '@cfworker/json-schema';

// The validator rejects some values that the API accepts, and a user could not save them. The API checks the rest.
const isEmail = (text: string) => /^(?:[^\s@"]+|".+")@[^\s@]+$/u.test(text);
Object.assign(format, {
  email: isEmail,
  'idn-email': isEmail,
  uri: (text: string) => URL.canParse(text),
  duration: (text: string) => /^P[\dYMWDTHS.,]+$/.test(text),
  // The schema has a pattern besides.
  hostname: () => true,
});

/** What is wrong with a value, or undefined. The API checks again, with rules that a JSON Schema cannot express. */
export function findProblem(given: Readonly<Record<string, unknown>>, value: unknown): string | undefined {
  // The API explains what a format does not have, such as a precision, better than a long pattern.
  const schema = Object.hasOwn(FORMATS, String(given.format)) ? { ...given, pattern: undefined } : given;
  const errors = findErrors(schema, value);
  // The last error is the innermost.
  const error = errors.at(-1);
  if (!error) return undefined;
  const limit = schema[error.keyword];
  const isInside = error.instanceLocation !== '#';
  const place = isInside ? `${error.instanceLocation.slice(2)}: ` : '';
  const known = MESSAGES[error.keyword];
  return place + (known && !isInside ? known(limit) : lowerFirst(error.error.replace(/^Instance /, '')));
}

/** None for a schema with a pattern that is only valid without the flag `u`, with which the validator compiles each pattern. */
function findErrors(schema: Readonly<Record<string, unknown>>, value: unknown) {
  try {
    return new Validator(schema, '2020-12', false).validate(value).errors;
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

const MESSAGES: Readonly<Record<string, (limit: unknown) => string>> = {
  minLength: (limit) => `must have at least ${count(limit, 'character')}`,
  maxLength: (limit) => `must have at most ${count(limit, 'character')}`,
  minimum: (limit) => `must be at least ${limit}`,
  maximum: (limit) => `must be at most ${limit}`,
  exclusiveMinimum: (limit) => `must be more than ${limit}`,
  exclusiveMaximum: (limit) => `must be less than ${limit}`,
  multipleOf: (limit) => `must be a multiple of ${limit}`,
  pattern: (limit) => `must match ${limit}`,
  format: (limit) => FORMATS[String(limit)] ?? `must be a valid ${limit}`,
  type: (limit) => (limit === 'integer' ? 'must be a whole number' : `must be of the type ${limit}`),
  minItems: (limit) => `must have at least ${count(limit, 'item')}`,
  maxItems: (limit) => `must have at most ${count(limit, 'item')}`,
};

const FORMATS: Readonly<Record<string, string>> = {
  date: 'must be a date, such as 2026-11-20',
  'date-time': 'must be an instant, such as 2026-11-20T09:00:00Z',
  duration: 'must be a duration, such as PT1H30M',
  email: 'must be an email address',
  'idn-email': 'must be an email address',
  uri: 'must be a URL, such as https://example.com',
  uuid: 'must be a UUID',
};

/** What a value must be, before there is one to check. */
export function findHint(
  { type, items, format, pattern, minimum, maximum, examples }: Readonly<Record<string, unknown>>,
  isJson: boolean,
) {
  if (isJson) {
    const [example] = Array.isArray(examples) ? examples : type === 'array' ? [LISTS[Object(items).type]] : [];
    return example === undefined ? 'JSON' : `JSON, such as ${JSON.stringify(example)}`;
  }
  if (format !== undefined) return (FORMATS[String(format)] ?? '').replace('must be ', '');
  // The bounds of every whole number that storage has.
  const isLimit = (limit: unknown) => typeof limit === 'number' && Math.abs(limit) < 2_147_483_647;
  const hints = [
    isLimit(minimum) ? `at least ${minimum}` : '',
    isLimit(maximum) ? `at most ${maximum}` : '',
    pattern === undefined ? '' : `matches ${pattern}`,
  ];
  return hints.filter(Boolean).join(', ');
}

const LISTS: Readonly<Record<string, unknown>> = { string: ['one', 'two'], number: [1.5, 2], integer: [1, 2] };

function count(limit: unknown, noun: string): string {
  return `${limit} ${noun}${limit === 1 ? '' : 's'}`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, '');
}
