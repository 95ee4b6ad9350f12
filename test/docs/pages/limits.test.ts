import { createDocuments } from '@playline/api-docs';
import { expect, it } from 'vitest';
import { SOURCE } from '../gateways.ts';

const documents = createDocuments(SOURCE);

it('every document states size limits in KiB or MiB', () => {
  for (const path of ['/docs/reference', '/openapi.json', '/llms.txt', '/collection.json'])
    expect(documents.get(path)?.text, path).toMatch(
      /A batch can be up to 1 MiB after decompression, and a single message up to 32 KiB\./,
    );
  for (const [path, { text }] of documents) {
    // The page of the settings shows their values in the units of the settings.
    if (path === '/docs/settings' || path === '/docs/search.json') continue;
    expect(text, path).not.toMatch(/\b\d{4,} bytes|\b(1048576|32768)\b/);
  }
});
