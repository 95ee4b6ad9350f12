import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createFormTokens } from './form-tokens.ts';

const secret = Buffer.alloc(32, 7);
const use = { sessionId: 's', path: '/projects/p', action: 'rename' };

it('a form token is valid only for the session, page and action for which it was issued', () => {
  const tokens = createFormTokens(secret);
  const token = tokens.issue(use);
  expect(tokens.check(token, use)).toMatchObject({ nonce: token.split('.')[0] });
  for (const other of [{ sessionId: 't' }, { sessionId: '' }, { path: '/projects/q' }, { action: 'archive' }])
    expect(tokens.check(token, { ...use, ...other })).toBeNull();
  expect(createFormTokens(Buffer.alloc(32, 8)).check(token, use)).toBeNull();
});

it('a form token is valid for twelve hours', () => {
  let nowMs = 1_000_000;
  const tokens = createFormTokens(secret, () => nowMs);
  const token = tokens.issue(use);
  nowMs += 12 * 3_600_000 - 1_000;
  expect(tokens.check(token, use)).toMatchObject({ lifetimeS: 1 });
  nowMs += 1_000;
  expect(tokens.check(token, use)).toBeNull();
});

it('modified tokens and arbitrary strings are rejected as form tokens', () => {
  const tokens = createFormTokens(secret);
  const token = tokens.issue(use);
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (index, character) => {
      const modified = token.slice(0, index) + character + token.slice(index + 1);
      fc.pre(modified !== token);
      expect(tokens.check(modified, use)).toBeNull();
    }),
  );
  fc.assert(fc.property(fc.string(), (text) => tokens.check(text, use) === null));
});
