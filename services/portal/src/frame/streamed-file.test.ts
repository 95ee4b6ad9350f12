import { expect, it } from 'vitest';
import type { Visit } from './page.ts';
import { sendStreamedFile } from './page-route.ts';

it('sendStreamedFile ends the query if the client disconnects before the first piece', async () => {
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
  await sendStreamedFile(visit as unknown as Visit, { type: 'text/csv', pieces: pieces() }, []);
  expect(isOpen).toBe(false);
});
