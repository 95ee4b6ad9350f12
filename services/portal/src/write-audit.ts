import type { AuditEntry, AuditLog } from '@playline/access-keys';
import type { Exchange } from '@playline/http';
import { waitAtMost } from '@playline/stores';
import type { Visit } from './frame/page.ts';

/** What leaves no record of its own behind. */
export type AuditedAction =
  | 'session.create'
  | 'session.end'
  | 'session.refuse'
  | 'openid.link'
  | 'openid.unlink'
  | 'key.show'
  | 'erasure.request'
  | 'messages.save'
  | 'rejections.save'
  | 'mints.save'
  | 'activities.save'
  | 'audit.save'
  | 'person.find'
  | 'identity.unlink'
  | 'member.remove';

/** What is said of it. Never a secret, a login, or an id of a player. */
export interface AuditedEvent {
  readonly action: AuditedAction;
  /** Id of what it was done to. */
  readonly object?: string;
  /** Whoever did it, where the visit does not tell yet. */
  readonly actor?: string;
  readonly detail?: AuditEntry['detail'];
}

/** Notes what somebody did with this visit; never fails. */
export type WriteAudit = (visit: Visit, noted: AuditedEvent) => Promise<void>;

export interface WriteAuditParts {
  readonly audit: AuditLog;
  readonly onFault: (exchange: Exchange, fault: unknown) => void;
  /** A person waits no longer than this for the note. */
  readonly waitMs?: number;
}

const WAIT_MS = 1_000;

/** A note that fails is told to the log, and a slow one is waited for briefly: what the person asked for has happened. */
export function createWriteAudit({ audit, onFault, waitMs = WAIT_MS }: WriteAuditParts): WriteAudit {
  return async (visit, { action, object = '', actor, detail = {} }) => {
    const entry: AuditEntry = {
      actor: actor ?? visit.account?.id ?? '',
      action,
      object,
      detail,
      projectId: visit.project?.id ?? '',
      environmentId: visit.environment?.id ?? '',
      address: visit.address,
      requestId: visit.author.requestId,
    };
    const appended = Promise.resolve()
      .then(() => audit.append(entry))
      .catch((fault) => onFault(visit.exchange, fault));
    await waitAtMost(waitMs, appended, () => {});
  };
}
