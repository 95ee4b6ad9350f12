import { PublicError } from '@playline/errors';
import { expect, it } from 'vitest';
import { createAdmitStranger } from '../app.ts';

it('lets sixty forms a minute in from an address, and says when the next one is', () => {
  let nowMs = 0;
  const admit = createAdmitStranger(() => nowMs);
  for (let form = 0; form < 60; form++) {
    admit('192.0.2.1');
    nowMs += 500;
  }
  expect(() => admit('192.0.2.1')).toThrow(PublicError);
  expect(() => admit('192.0.2.1')).toThrow('Try again in 30 seconds.');
  admit('192.0.2.2');
  nowMs += 30_000;
  admit('192.0.2.1');
});
