/** Shows messages and their outcomes as they arrive. */
import { findPublishableKey } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import {
  choice,
  copyableBlock,
  docsLink,
  emptyState,
  field,
  filterBar,
  hidden,
  withAllOption,
} from '../../frame/components.ts';
import { icon } from '../../frame/icons.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { FILTER_CHOICES, type LiveFilter, parseFilter } from '../../live/index.ts';
import type { PageParts } from '../index.ts';
import { toEventCommand } from '../keys/new-key.ts';
import { shouldMaskIds } from './events.ts';
import { createPersonAction, toPersonFilter } from './person-filter.ts';

type Parts = Pick<PageParts, 'keys' | 'settings' | 'people' | 'writeAudit'>;

export function createLivePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/live',
    access: 'live.read',
    show: async (visit, failure) => {
      const filter = parseFilter(visit.query, !shouldMaskIds(visit));
      const key = findPublishableKey(await parts.keys.all(), scopeOf(visit).environment.id);
      return {
        kind: 'page',
        title: 'Live',
        actions: html`<button type="button" class="outline pause" hidden>Pause</button>`,
        content: html`${toFilter(visit, filter, failure?.values)}
${toLive(visit, filter, key === null ? '' : toSendCommand(key, parts.settings))}
${emptyState('Waiting for the next message', toFirstMessage(parts, visit, key), { path: '/docs/quickstart', text: 'Quickstart for your client' })}
<p class="hint">${toExplanation(visit)} ${docsLink('/docs/messages', 'Rules of a message')}</p>`,
        scripts: ['live.js'],
      };
    },
    actions: { person: createPersonAction(parts, 'live') },
  };
}

function toExplanation(visit: Visit): HtmlValue {
  const masked = shouldMaskIds(visit)
    ? ' With your role, ids are shortened to two characters and properties are hidden.'
    : '';
  return html`Messages appear within two seconds: <b>accepted</b> is on the log, <b>stored</b> can be queried, <b>rejected</b> breaks a rule, <b>fenced</b> belongs to an erased person, <b>dead-lettered</b> needs an operator. This list is not saved; <a href="${pathInEnvironment(visit, 'explore')}">Explore</a> has all stored messages.${masked}`;
}

const FILTER_LABELS = { type: 'Type', surface: 'Surface', test: 'Test traffic', outcome: 'Status' } as const;

/** Uses GET, so that users can share a filtered page as a link. */
function toFilter(visit: Visit, filter: LiveFilter, submitted?: FormValues): HtmlValue {
  const choices = (Object.keys(FILTER_CHOICES) as (keyof typeof FILTER_CHOICES)[]).map((name) =>
    choice({ name, label: FILTER_LABELS[name], value: filter[name], choices: withAllOption(FILTER_CHOICES[name]) }),
  );
  const person = filter.identity === '' ? '' : hidden('identity', filter.identity);
  const fields = html`${person}${field({ name: 'name', label: 'Event contains', value: filter.name, maxLength: 200 })}
${field({ name: 'id', label: 'Message or trace id', value: filter.id, maxLength: 36 })}
${choices}`;
  return filterBar(visit, fields, { beside: toPersonFilter(visit, submitted) });
}

const COLUMNS = ['Received', 'Status', 'Type', 'Event', 'Surface', 'Player'];

/** The script fills the table and the panel. */
function toLive(visit: Visit, filter: LiveFilter, command: string): HtmlValue {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''));
  const events = `${pathInEnvironment(visit, 'live')}/events${query.size === 0 ? '' : `?${query}`}`;
  return html`<section class="live" data-events="${events}" data-explore="${pathInEnvironment(visit, 'explore')}" data-people="${pathInEnvironment(visit, 'people')}" data-command="${command}">
<noscript><p class="message failed">Live messages require JavaScript. Explore works without it.</p></noscript>
<p><span role="status" class="counts muted">Connecting…</span></p>
<p class="message failed trouble" role="alert" hidden></p>
<div class="beside" hidden><div class="scroll" tabindex="0" role="region" aria-label="Live messages"><table><caption class="visually-hidden">Live messages, newest first</caption>
<thead><tr>${COLUMNS.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody></tbody></table></div>
<aside class="panel drawer" aria-label="Message" tabindex="-1" hidden></aside></div>
<template class="copy-icon">${icon('copy')}</template></section>`;
}

/** The script appends the message as JSON. */
const toSendCommand = (key: string, { gatewayUrl, headerPrefix }: Parts['settings']): string =>
  `curl -sS '${gatewayUrl}/v1/audience/messages' -H 'content-type: application/json' -H '${headerPrefix}-publishable-key: ${key}' -d `;

function toFirstMessage({ settings }: Parts, visit: Visit, key: string | null): HtmlValue {
  if (key === null)
    return html`<p>This environment has no publishable key yet. <a href="${pathInEnvironment(visit, 'keys')}">Create a key</a>, then use it to send a message.</p>`;
  return html`<p>To send a message, run this command:</p>
${copyableBlock(toEventCommand(key, settings), 'the command that sends a message')}
<p>A 401 response means that the key is not valid. A 400 response names the invalid field, and the message appears here as rejected. Messages sent before you opened this page are in <a href="${pathInEnvironment(visit, 'explore')}">Explore</a>.</p>`;
}
