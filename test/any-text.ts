import fc from 'fast-check';
import { baseValues } from './kit/base.ts';

const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;
const codePoint = fc
  .oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0x10ffff - SURROGATES }))
  .map((number) => String.fromCodePoint(number < FIRST_SURROGATE ? number : number + SURROGATES));

/**
 * Any well-formed text of so many code points, some of which begin with a name of the engine. The unit `binary` of fast-check's `string` has the same texts, but takes most
 * of a second and 185 MB in each process.
 */
export function anyText({ minLength = 0, maxLength = 10 } = {}): fc.Arbitrary<string> {
  const any = fc.array(codePoint, { minLength, maxLength }).map((all) => all.join(''));
  const names = baseValues.KEY_NAMES.filter(({ length }) => length <= maxLength);
  if (names.length === 0) return any;
  const named = fc.constantFrom(...names).chain((name) => {
    const left = (length: number) => Math.max(0, length - name.length);
    return fc
      .array(codePoint, { minLength: left(minLength), maxLength: left(maxLength) })
      .map((all) => name + all.join(''));
  });
  return fc.oneof({ weight: 7, arbitrary: any }, { weight: 1, arbitrary: named });
}
