import { describe, expect, it } from 'vitest';
import { createExpectation, differencesOf, expectRejection, parseVerdict, type Verdict } from './expectation.ts';

function example() {
  const expectation = createExpectation();
  expectation.accepted = 3;
  expectRejection(expectation, { echo: 'a', errors: [['toId', 'INVALID_VALUE']], messages: 1 });
  expectRejection(expectation, { echo: 'b', errors: [['messageId', 'DUPLICATE_MESSAGE_ID']], messages: 2 });
  const verdict: Verdict = {
    success: true,
    accepted: 3,
    rejected: 3,
    rejections: [
      { messageId: 'b', errors: [{ field: 'messageId', code: 'DUPLICATE_MESSAGE_ID' }] },
      { messageId: 'a', errors: [{ field: 'toId', code: 'INVALID_VALUE' }] },
    ],
  };
  return { expectation, verdict };
}

describe('differencesOf', () => {
  it('returns none for the expected answer, whatever the order of its entries', () => {
    const { expectation, verdict } = example();
    expect(differencesOf(expectation, 200, verdict)).toEqual([]);
  });

  it.each<[string, number, Partial<Verdict>]>([
    ['another status', 400, {}],
    ['another number of accepted messages', 200, { accepted: 4 }],
    ['another number of rejected messages', 200, { rejected: 2 }],
    ['success that is not told', 200, { success: false }],
    ['a rejection too few', 200, { rejections: example().verdict.rejections.slice(1) }],
    ['a rejection too many', 200, { rejections: [...example().verdict.rejections, { messageId: 'c', errors: [] }] }],
    ['two entries of one id', 200, { rejections: [...example().verdict.rejections, example().verdict.rejections[0]!] }],
    [
      'another code',
      200,
      {
        rejections: [
          example().verdict.rejections[0]!,
          { messageId: 'a', errors: [{ field: 'toId', code: 'INVALID_FORMAT' }] },
        ],
      },
    ],
  ])('reports %s', (_name, status, change) => {
    const { expectation, verdict } = example();
    expect(differencesOf(expectation, status, { ...verdict, ...change })).toHaveLength(1);
  });
});

describe('parseVerdict', () => {
  it('accepts a MessagesResponse and nothing else', () => {
    expect(parseVerdict(JSON.stringify(example().verdict))).toEqual(example().verdict);
    for (const text of ['', 'null', '{}', '[]', '{"code":"VALIDATION_ERROR"}'])
      expect(parseVerdict(text), text).toBeNull();
  });
});
