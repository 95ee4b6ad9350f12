/** Writes audit entries for actions that do not change a record. */
import type { AuditEntry, AuditLog } from '@playline/access-keys';
import type { Exchange } from '@playline/http';
import { waitAtMost } from '@playline/stores';
import type { Visit } from './frame/page.ts';

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
  | 'demo.load'
  | 'person.find'
  | 'person.view'
  | 'person.save'
  | 'identity.unlink'
  | 'member.remove'
  | 'analyst.create'
  | 'analyst.revoke'
  | 'alert.acknowledged'
  | 'alert.test';

/** An audited action. Must not contain secrets, logins or player ids. */
export interface AuditedEvent {
  readonly action: AuditedAction;
  /** Id of the affected object. */
  readonly object?: string;
  /** Defaults to the signed-in account. */
  readonly actor?: string;
  readonly detail?: AuditEntry['detail'];
}

/** Never rejects. */
export type WriteAudit = (visit: Visit, event: AuditedEvent) => Promise<void>;

/** Maximum time that a response waits for its audit entry to be stored. */
const WAIT_MS = 1_000;

/** Errors are logged instead of thrown, because the audited action has already happened. */
export function createWriteAudit(parts: {
  readonly audit: AuditLog;
  readonly onFault: (exchange: Exchange, fault: unknown) => void;
}): WriteAudit {
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
      .then(() => parts.audit.append(entry))
      .catch((fault) => parts.onFault(visit.exchange, fault));
    await waitAtMost(WAIT_MS, appended, () => {});
  };
}
