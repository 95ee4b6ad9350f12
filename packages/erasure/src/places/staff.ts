import type { TablePlace } from './place.ts';
import { COUNT, TIME } from './words.ts';

/** Tables about people who run the service: no erasure of a player finds anything there. */
export const STAFF_TABLES: readonly TablePlace[] = [
  {
    name: 'audit_log',
    clearing: {
      by: 'kept',
      reason:
        'what people did who run the service, for two years: it names no player. Of staff it names accounts; the addresses ' +
        'of their requests are gone after 90 days, by a limit of the column',
    },
    columns: {
      project_id: 'names a project',
      environment_id: 'names an environment',
      happened_at: TIME,
      entry_id: 'names a change',
      kind: 'a word of ours',
      object: 'id of what was changed: a project, key, collection or account of staff; never an id of a player',
      revision: COUNT,
      action: 'a word of ours',
      actor: 'account of somebody of the staff, or of an operator',
      request_id: 'random; names a request',
      address: 'of staff; 90 days',
      detail: 'what was changed, by lists of members that may be shown; names and logins of staff',
    },
  },
];
