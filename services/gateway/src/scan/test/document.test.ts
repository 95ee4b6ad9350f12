import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readDocument } from './document.ts';

function readText(text: string) {
  const read = readDocument(Buffer.from(text));
  if (!read.ok) throw new Error('the body cannot be read');
  return read;
}

it.each([
  ['invalid JSON', Buffer.from('{"messages":[}')],
  ['an empty body', Buffer.alloc(0)],
  ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ['a surrogate encoded as UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ['two byte order marks', Buffer.from('\uFEFF\uFEFF{}')],
])('readDocument refuses %s', (_, body) => {
  expect(readDocument(body)).toEqual({ ok: false });
});

it('readDocument returns the fields of a message exactly as written in the body', () => {
  const message = '{ "messageId" : 1.50 , "properties":{ "a" : [ 1 , "]}\\"" ] },"traits" : {}, "x":[{}] }';
  expect(readText(` { "messages" : [ ${message} , 7 ,[1, 2],"a,b" ] } `).sources).toEqual([
    { bytes: message.length, messageIdText: '1.50', propertiesText: '{ "a" : [ 1 , "]}\\"" ] }', traitsText: '{}' },
    { bytes: 1, messageIdText: '' },
    { bytes: 6, messageIdText: '' },
    { bytes: 5, messageIdText: '' },
  ]);
});

it('readDocument uses the last of several duplicate keys, with or without escapes, like JSON.parse', () => {
  const text = '{"messages":[1],"\\u006dessages":[{"properties":{"a":1},"propert\\u0069es":{"a":2}}]}';
  const { document, sources } = readText(text);
  expect(document).toEqual({ messages: [{ properties: { a: 2 } }] });
  expect(sources[0]?.propertiesText).toBe('{"a":2}');
});

it('readDocument finds the same values as JSON.parse in any JSON', () => {
  const message = fc.oneof(
    fc.jsonValue(),
    fc.record({ messageId: fc.jsonValue(), properties: fc.jsonValue(), traits: fc.jsonValue() }, { requiredKeys: [] }),
  );
  fc.assert(
    fc.property(fc.array(message, { maxLength: 5 }), fc.constantFrom('', '\t', '\n  '), (messages, space) => {
      const { sources } = readText(JSON.stringify({ a: { messages: [1] }, messages }, null, space));
      expect(sources).toHaveLength(messages.length);
      for (const [index, source] of sources.entries()) {
        const sent = messages[index];
        const fields = (Array.isArray(sent) ? {} : Object(sent)) as Record<string, unknown>;
        const toText = (name: string) => (Object.hasOwn(fields, name) ? JSON.stringify(fields[name]) : undefined);
        const compact = (text: string | undefined) => text && JSON.stringify(JSON.parse(text));
        expect(compact(source.messageIdText || undefined)).toBe(toText('messageId'));
        expect(compact(source.propertiesText)).toBe(toText('properties'));
        expect(compact(source.traitsText)).toBe(toText('traits'));
      }
    }),
  );
});
