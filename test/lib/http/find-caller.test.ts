import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readAddress } from '../../../lib/http/find-caller.ts';

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:51234', '203.0.113.7'],
  [' 203.0.113.7 ', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['[::ffff:203.0.113.7]:51234', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2:ffff::1]:51234', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
  ['unknown', undefined],
  ['_hidden', undefined],
  ['', undefined],
  ['203.0.113.7:port', undefined],
])('reads %j of the trusted proxy as %s', (text, address) => {
  expect(readAddress(text, 1)).toBe(address);
  expect(readAddress(`10.0.0.1, ${text}`, 1)).toBe(address);
});

test('trusts nothing that is before the trusted proxies, and nothing without them', () => {
  fc.assert(
    fc.property(fc.string(), fc.ipV4(), fc.array(fc.ipV4(), { maxLength: 4 }), (sent, address, proxies) => {
      const header = [sent, address, ...proxies].join(',');
      expect(readAddress(header, proxies.length + 1)).toBe(address);
      expect(readAddress(header, 0)).toBeUndefined();
    }),
  );
});

test('has no address if there are fewer proxies than the setting says', () => {
  expect(readAddress('203.0.113.7', 2)).toBeUndefined();
  expect(readAddress(null, 1)).toBeUndefined();
});
