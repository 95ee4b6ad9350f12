import { expect, it } from 'vitest';
import { describeRejection } from './rejection-sentences.ts';

it.each([
  ['eventName', 'MISSING_REQUIRED_FIELD', 'eventName is required for track messages'],
  ['eventName', 'INVALID_VALUE', 'eventName is longer than 256 characters'],
  ['context.pageUrl', 'INVALID_VALUE', 'context.pageUrl is longer than 2048 characters'],
  ['context.library', 'MISSING_REQUIRED_FIELD', 'context.library is required'],
  ['surface', 'INVALID_ENUM', 'surface is not one of web, pixel, unity, unreal'],
  ['type', 'UNSUPPORTED_TYPE', 'type is not one of track, page, screen, identify, alias'],
  ['messageId', 'INVALID_FORMAT', 'messageId is not a UUID or is not a string'],
  ['messageId', 'DUPLICATE_MESSAGE_ID', 'messageId occurs more than once in the batch'],
  [
    'eventTimestamp',
    'INVALID_VALUE',
    'eventTimestamp is too far in the past or in the future; unless this installation sets other limits, 30 days and 24 hours are accepted',
  ],
  ['toId', 'INVALID_VALUE', 'toId is longer than 256 characters or is the same as fromId'],
  ['properties', 'INVALID_VALUE', 'properties is nested deeper than 64 levels'],
  ['message', 'INVALID_VALUE', 'message is larger than 32768 bytes'],
])('the sentence for %s with %s names every rule and its bound', (field, code, expected) => {
  expect(describeRejection({ field, code })).toBe(expected);
});

it('a code or field that the contract does not contain has no sentence', () => {
  expect(describeRejection({ field: 'eventName', code: 'NEW_CODE' })).toBeNull();
  expect(describeRejection({ field: 'constructor', code: 'INVALID_VALUE' })).toBeNull();
});
