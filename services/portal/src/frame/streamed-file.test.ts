import { expect, it } from 'vitest';
import type { Visit } from './page.ts';
import { sendStreamedFile } from './page-route.ts';

it('sendStreamedFile ends the query if the client disconnects before the first chunk', async () => {
  let isOpen = false;
  const chunks = async function* () {
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
  await sendStreamedFile(visit as unknown as Visit, { type: 'text/csv', chunks: chunks() }, []);
  expect(isOpen).toBe(false);
});
