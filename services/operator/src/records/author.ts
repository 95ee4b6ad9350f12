import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { Author } from '@playline/access-keys';

/** Who runs this process, by the account of the operating system, and an id for all that it changes. */
export function createAuthor(): Author {
  return { changedBy: accountName(), requestId: randomUUID() };
}

/** A container may run under a number that no account has. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
