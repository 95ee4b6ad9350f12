import type { AlertRule } from './deployment-rules.ts';

/**
 * The rules about one environment of a project, evaluated by the portal. They read the state as members of the project
 * see it, so a member can act on each of them. The page of a project explains each alert with these texts.
 */
export const PROJECT_RULES = [
  {
    name: 'MessagesRejected',
    severity: 'warning',
    summary: 'At least 5 % of the messages of 15 minutes, and at least 50 messages, are rejected',
    meaning: 'The gateways do not store these messages. Often a new client version sends a wrong field.',
    action: 'Open Rejections: it names the field, the client version and the fix.',
  },
  {
    name: 'NoMessages',
    severity: 'critical',
    summary: 'A production environment receives no messages for 15 minutes, although it received some a day before',
    meaning:
      'Clients cannot reach the gateways, have stopped sending, or use a key that has ended. A new environment is compared with the hour before.',
    action: 'Open Live and send a message with the command of the page Keys. If it arrives, check the last release.',
  },
  {
    name: 'MessagesDelayed',
    severity: 'warning',
    summary: 'Accepted messages are stored after more than two minutes, or not at all',
    meaning: 'Accepted messages are safe in the log, but queries do not find the newest messages yet.',
    action: 'Contact the operator of this instance. Operators run `npm run status`, which names the blocked partition.',
  },
  {
    name: 'DeadLettersOpen',
    severity: 'warning',
    summary: 'Records of the environment could not be processed and are dead letters',
    meaning: 'The records are kept, but are missing from queries until an operator replays or drops them.',
    action: 'Contact the operator of this instance. Operators run `npm run dead-letters -- list`.',
  },
  {
    name: 'ErasureLate',
    severity: 'warning',
    summary: 'An erasure has no receipt after an hour',
    meaning: 'The data of the person can still be found by queries. Most erasures take less than a minute.',
    action:
      'Open Erasures and report the id of the oldest erasure to the operator. Operators run `npm run erasures -- show`.',
  },
  {
    name: 'MintsPending',
    severity: 'warning',
    summary: 'A mint request is pending for more than 30 minutes',
    meaning: 'The asset is not on the chain. Most mints take a few minutes.',
    action: 'Open Mints: the status contains the reason, such as a missing minter role or an empty balance.',
  },
  {
    name: 'MintsFailed',
    severity: 'warning',
    summary: 'At least three mint requests failed within an hour',
    meaning: 'The assets are not on the chain, and will not be until your server requests them again.',
    action: 'Open Mints and filter by failed: each request shows its error.',
  },
  {
    name: 'KeyEndsSoon',
    severity: 'warning',
    summary: 'A key that ends within seven days is in use',
    meaning: 'Builds that still contain the key lose their messages when it ends.',
    action: 'Open Keys: release a build with the new key, or let the key end later.',
  },
  {
    name: 'EndedKeyInUse',
    severity: 'warning',
    summary: 'Clients send messages with a key that has ended',
    meaning: 'The gateways refuse these requests, and their messages are lost.',
    action: 'Open Keys: the list of ended keys shows which key it is. Release a build with a live key.',
  },
] as const satisfies readonly AlertRule[];

export type ProjectRuleName = (typeof PROJECT_RULES)[number]['name'];

export const findProjectRule = (name: string): AlertRule | undefined =>
  PROJECT_RULES.find((rule) => rule.name === name);
