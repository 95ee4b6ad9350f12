/** The expected answer to a batch: the set of `field CODE` for each rejected message id, and the number accepted. */
export interface Expectation {
  accepted: number;
  rejected: number;
  /** `messageId` as in the answer -> set of `field CODE`. */
  rejections: Map<string, Set<string>>;
}

export function createExpectation(): Expectation {
  return { accepted: 0, rejected: 0, rejections: new Map() };
}

/** Adds messages that must be rejected; errors of one id are merged, as the answer has one entry for each id. */
export function expectRejection(
  expectation: Expectation,
  rejected: { echo: string; errors: readonly (readonly [string, string])[]; messages: number },
): void {
  const entry = expectation.rejections.get(rejected.echo) ?? new Set();
  for (const [field, code] of rejected.errors) entry.add(`${field} ${code}`);
  expectation.rejections.set(rejected.echo, entry);
  expectation.rejected += rejected.messages;
}

/** The service's answer, parsed leniently: a difference is reported and does not end the run. */
export interface Verdict {
  readonly success: boolean;
  readonly accepted: number;
  readonly rejected: number;
  readonly rejections: readonly { messageId: string; errors: readonly { field: string; code: string }[] }[];
}

/** Parses a MessagesResponse; null for any other text. */
export function parseVerdict(text: string): Verdict | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const candidate = value as Partial<Verdict> | null;
  const shaped =
    typeof candidate?.success === 'boolean' &&
    Number.isInteger(candidate.accepted) &&
    Number.isInteger(candidate.rejected) &&
    Array.isArray(candidate.rejections);
  return shaped ? (candidate as Verdict) : null;
}

/** All differences between an answer and the expected one, one sentence each; empty when they agree. */
export function differencesOf(expected: Expectation, status: number, verdict: Verdict): string[] {
  const differences: string[] = [];
  const compare = (what: string, wanted: unknown, given: unknown) => {
    if (wanted !== given) differences.push(`${what}: expected ${wanted}, was ${given}`);
  };
  compare('status', expected.accepted > 0 ? 200 : 400, status);
  compare('success', expected.accepted > 0, verdict.success);
  compare('accepted', expected.accepted, verdict.accepted);
  compare('rejected', expected.rejected, verdict.rejected);
  const given = new Map<string, string>();
  for (const { messageId, errors } of verdict.rejections) {
    if (given.has(messageId)) differences.push(`two entries for message id ${JSON.stringify(messageId)}`);
    given.set(messageId, toText(new Set(errors.map(({ field, code }) => `${field} ${code}`))));
  }
  for (const [messageId, errors] of expected.rejections) {
    compare(`rejection of ${JSON.stringify(messageId)}`, toText(errors), given.get(messageId) ?? 'none');
    given.delete(messageId);
  }
  for (const [messageId, errors] of given) compare(`rejection of ${JSON.stringify(messageId)}`, 'none', errors);
  return differences;
}

function toText(errors: ReadonlySet<string>): string {
  return [...errors].sort().join(', ');
}
