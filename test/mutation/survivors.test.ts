import { expect, test } from 'vitest';
import { isInCode, readSurvivors } from './survivors.ts';

test('each mutant that no test notices is in the code, with a reason', () => {
  const survivors = readSurvivors();
  expect(survivors.filter((survivor) => !isInCode(survivor))).toEqual([]);
  for (const survivor of survivors)
    expect(survivor).toEqual({
      file: expect.any(String),
      line: expect.any(String),
      becomes: expect.any(String),
      why: expect.stringMatching(/^(equivalent|cost|slower test|open): \S/),
    });
});
