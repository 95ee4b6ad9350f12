/** Functions that return the project, environment or account of a visit, or throw a 404 error. */
import type { AccountRecord, ProjectEnvironment, ProjectRecord, SessionRecord } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { Visit } from './page.ts';

/** Also thrown for forbidden pages, so that the response does not reveal whether the page exists. */
export function pageNotFound(): PublicError {
  return new PublicError('RESOURCE_NOT_FOUND', {
    message: 'This page does not exist, or your account does not have access to it.',
  });
}

export function projectOf({ project }: Visit): ProjectRecord {
  if (project === null) throw pageNotFound();
  return project;
}

export function scopeOf(visit: Visit): { readonly project: ProjectRecord; readonly environment: ProjectEnvironment } {
  const { environment } = visit;
  if (environment === null) throw pageNotFound();
  return { project: projectOf(visit), environment };
}

export interface Visitor {
  readonly account: AccountRecord;
  readonly session: SessionRecord;
}

export function signedInOf({ account, session }: Visit): Visitor {
  if (account === null || session === null) throw pageNotFound();
  return { account, session };
}
