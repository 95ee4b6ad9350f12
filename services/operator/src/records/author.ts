import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { Author } from '@playline/access-keys';

/** The operating-system account of this process, and one request id for all its changes. */
export function createAuthor(): Author {
  return { changedBy: accountName(), requestId: randomUUID() };
}

/** In a container the user id may have no account. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
