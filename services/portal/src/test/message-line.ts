import type { MessageLine } from '../reads/index.ts';

export const createMessageLine = (overrides: Partial<MessageLine> = {}): MessageLine => ({
  messageId: '0b1f7a52-6c3e-4d8a-9f10-2e5c7d9a4b05',
  happenedMs: Date.now(),
  receivedMs: Date.now(),
  type: 'track',
  name: 'jump',
  surface: 'web',
  library: 'ts',
  libraryVersion: '1',
  isTest: false,
  identityId: 'b'.repeat(32),
  consentLevel: 'full',
  anonymousId: '',
  userId: 'ada',
  identityType: 'email',
  traceId: 'a trace',
  ...overrides,
});
