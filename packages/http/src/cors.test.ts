import { expect, it } from 'vitest';
import { corsHeaders, narrowOrigin } from './exchange.ts';

it('headers that are limited to an origin twice, before a body and after it, are those of the second time', () => {
  const { answer } = corsHeaders('x-key');
  const once = narrowOrigin(answer, 'https://game.example');
  expect(narrowOrigin(once, 'https://game.example')).toEqual(once);
  expect(narrowOrigin(once, null)).toEqual(narrowOrigin(answer, null));
});
