import type { AccountRecord, ProjectEnvironment, ProjectRecord, SessionRecord } from '@playline/access-keys';
import { pageNotFound } from './not-found.ts';
import type { Visit } from './page.ts';

/** The project of a page whose path names one. */
export function projectOf({ project }: Visit): ProjectRecord {
  if (project === null) throw pageNotFound();
  return project;
}

/** Project and environment of a page whose path names both. */
export function scopeOf(visit: Visit): { readonly project: ProjectRecord; readonly environment: ProjectEnvironment } {
  const { environment } = visit;
  if (environment === null) throw pageNotFound();
  return { project: projectOf(visit), environment };
}

/** Who has signed in, on a page that asks for that. */
export function signedInOf({ account, session }: Visit): {
  readonly account: AccountRecord;
  readonly session: SessionRecord;
} {
  if (account === null || session === null) throw pageNotFound();
  return { account, session };
}
