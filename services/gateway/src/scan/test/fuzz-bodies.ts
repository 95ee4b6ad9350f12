import type { Random } from '@playline/testkit/random';
import { EDGE_LOCATIONS, EDGE_VALUES, withEdgeValue } from './edge-values.ts';
import { SAMPLE_KINDS, sampleMessage } from './sample-messages.ts';

/** Strings to insert at random offsets: punctuation, fields with edge-case values, escapes, white space, long strings. */
const TOKENS: readonly string[] = [
  ...['"', '\\', '{', '}', '[', ']', ',', ':', ' ', '\t', '\n', '\u0000', '\u007f', '\uFEFF', 'null', 'true'],
  ...['false', '0', '-', '01', '1.', '1e5', '1e999', '-0', '.', '""', '" "', '"a"', '\\u0041', '\\u0020', '\\ud800'],
  ...['\\ud83d\\ude00', '\\/', '\\"', 'é', '€', '😀', '\u00a0', '\u3000', 'か', '"type"', '"type":"page",'],
  ...['"userId":', '"userId":null,', '"userId":"",', '"userId":" u",', '"userId":"u\u3000",', '"anonymousId":"  ",'],
  ...['"messageId":"x",', '"context":{},', '"context":null,'],
  ...['"context":{"library":"a","libraryVersion":"1","pageTitle":"\\u0022\\n"},', '"fromId":" a0",'],
  ...['"toId":"76561198000000000",', '"toId":"email|5f0e7b1c9d3a4e2b8c6d",', '"x":[1,{"a":2}],'],
  ...['"screenDensity":"1",', '"screenDensity":2.625,', '"screenDensity":1e999,', '"eventName":"",'],
  ...['"eventName":"\\u0020",', '"eventTimestamp":"2026-02-30T08:13:36Z",', '"__proto__":{"type":"x"},'],
  ...['"\\u0074ype":"page",', '"\\u006dessages":[],', '"messages":[],', '"properties":{"a":1},', '"properties":[],'],
  '"properties":{"wei":20000000000000000000000,"a":1e400,"b":[-9223372036854775809,18446744073709551615]},',
  '"traits":{"\\udf00\\ud83c":"\\ud83c","a":"\\\\ud83c\\ud83d\\ude00","b":[1e5,-1.5E+308,1e-400,0.01e310]},',
  ...['18446744073709551616', '-9223372036854775808', '1e308', '9e308', '\\udc00', '"traits":null,', '"test":1,'],
  ...['"test":true,', '"surface":"web",', '"surface":"tv",', '"identityType":"steam",', '"consentLevel":"not_set",'],
  ...['a'.repeat(300), 'é'.repeat(130), '"deviceId":" ",', '[[[[[['],
  `"properties":${'{"a":'.repeat(63)}{}${'}'.repeat(63)},`,
  ...[`"properties":${'{"a":'.repeat(64)}{}${'}'.repeat(64)},`, `"traits":{"a":${'['.repeat(90)}${']'.repeat(90)}},`],
  `"x":${'[{"a":'.repeat(60)}0${'}]'.repeat(60)},`,
  '"\\u0063ontext":{"l\\u0069brary":"\\u0061","libraryVersion":"1"},',
  '"context":{"library":"a","library":null,"libraryVersion":"1","pagePath":7},',
  ...['"eventTimestamp":"2026-11-21T11:59:0\\u0030Z",', '"type":"p\\u0061ge",', '"userId":"a\\/b",', '"test":false,'],
  ...['1e-999', '-1e999', '{"a":{"a":{"a":{}}}}', '"locale":"x\\u00e9",'],
];

function damageOnce(text: string, { below }: Random): string {
  const at = below(text.length);
  const token = TOKENS[below(TOKENS.length)]!;
  switch (below(7)) {
    case 0:
      return text.slice(0, at) + text.slice(at + 1 + below(3));
    case 1:
      return text.slice(0, at) + token + text.slice(at);
    case 2:
      return text.slice(0, at) + token + text.slice(at + 1);
    case 3: {
      // Before a key, where most tokens leave the body well-formed.
      const key = text.indexOf(',"', at) + 1;
      return text.slice(0, key) + token + text.slice(key);
    }
    case 4: {
      const value = text.indexOf('":', at) + 2;
      const end = text.indexOf(',', value);
      return end < 0 ? text : text.slice(0, value) + token.replace(/,$/, '') + text.slice(end);
    }
    case 5: {
      // Inside a string, after its opening quote.
      const value = text.indexOf(':"', at) + 2;
      return text.slice(0, value) + token.replaceAll('"', '') + text.slice(value);
    }
    default: {
      const end = text.indexOf('",', at);
      return end < 0 ? text : text.slice(0, end) + token.replaceAll('"', '') + text.slice(end);
    }
  }
}

/** Returns the same id in various forms, or an invalid id. */
function damageId(id: unknown, { below }: Random): unknown {
  const text = String(id);
  return [text, text.toUpperCase(), text, 'no-uuid', 'NO-uuid', '', ' ', null, 7, [7]][below(10)];
}

/**
 * Creates a batch of one to six sample messages with up to three errors, sometimes with duplicate ids, a random byte,
 * an element that is not a message, or a message that is too large.
 */
export function createDamagedBody(random: Random, nowMs: number): Buffer {
  const { below } = random;
  const first = below(SAMPLE_KINDS);
  const messages = Array.from({ length: 1 + below(6) }, (_, index) => sampleMessage(first + index, nowMs));
  for (let times = below(4); times > 1; times--) {
    const at = below(messages.length);
    const value = EDGE_VALUES[below(EDGE_VALUES.length)];
    messages[at] = withEdgeValue(messages[at]!, EDGE_LOCATIONS[below(EDGE_LOCATIONS.length)]!, value);
  }
  if (below(4) === 0) {
    for (let times = 1 + below(3); times > 0; times--) {
      const messageId = damageId(messages[below(messages.length)]!.messageId, random);
      messages[below(messages.length)]!.messageId = messageId;
    }
  }
  if (below(40) === 0) messages[0]!.traits = { long: 'x'.repeat(32_000 + below(1000)) };
  const elements: unknown[] = below(10) === 0 ? [...messages, EDGE_VALUES[below(EDGE_VALUES.length)]] : messages;
  let text = JSON.stringify({ messages: elements }, null, below(8) === 0 ? 1 : 0);
  for (let times = below(4); times > 0; times--) text = damageOnce(text, random);
  const body = Buffer.from(text);
  if (below(20) === 0) body[below(body.length)] = below(256);
  return body;
}
