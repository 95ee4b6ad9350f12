import fc from 'fast-check';
import { expect, it } from 'vitest';
import { etagOf, isFresh } from './handler.ts';

const etag = etagOf('{"result":{}}');

it('entity tags are strong, and differ exactly when bodies differ', () => {
  expect(etag).toMatch(/^"[\w-]{22}"$/);
  expect(etagOf('{"result":{}}')).toBe(etag);
  expect(etagOf('{"result":{ }}')).not.toBe(etag);
});

it.each([etag, `W/${etag}`, `"a", ${etag}`, `"a",W/"b",${etag}`, '*', ' * ', `"with, comma", ${etag}`])(
  'a caller that sends %s has the current version',
  (header) => expect(isFresh(header, etag)).toBe(true),
);

it.each([undefined, '', '"a"', 'W/"a"', etag.slice(1, -1), '"*"', '**'])(
  'a caller that sends %s does not have the current version',
  (header) => expect(isFresh(header, etag)).toBe(false),
);

it('an entity tag is found exactly in lists that contain it', () => {
  const tag = fc.stringMatching(/^[\x21\x23-\x7e]{0,8}$/).map((text) => `"${text}"`);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('', 'W/'), tag), { minLength: 1 }), tag, (list, own) => {
      const header = list.map((parts) => parts.join('')).join(', ');
      expect(isFresh(header, own)).toBe(list.some(([, text]) => text === own));
    }),
  );
});
