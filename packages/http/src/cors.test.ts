import { expect, it } from 'vitest';
import { corsHeaders, restrictOrigin } from './exchange.ts';

it('headers that are limited to an origin twice, before a body and after it, are those of the second time', () => {
  const { answer } = corsHeaders('x-key');
  const once = restrictOrigin(answer, 'https://game.example');
  expect(restrictOrigin(once, 'https://game.example')).toEqual(once);
  expect(restrictOrigin(once, null)).toEqual(restrictOrigin(answer, null));
});
