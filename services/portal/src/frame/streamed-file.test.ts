import { expect, it } from 'vitest';
import type { Visit } from './page.ts';
import { sendLongFile } from './page-route.ts';

it('a file whose client left before its first piece ends its query, which counts against the share of the project', async () => {
  let isOpen = false;
  const pieces = async function* () {
    isOpen = true;
    try {
      yield 'first';
      yield 'second';
    } finally {
      isOpen = false;
    }
  };
  const visit = {
    exchange: { openStream: () => null, request: { method: 'GET' } },
    signal: new AbortController().signal,
  };
  await sendLongFile(visit as unknown as Visit, { type: 'text/csv', pieces: pieces() }, []);
  expect(isOpen).toBe(false);
});
