/** What a project declares for its analysts: the time zone of days, and the properties that are readable without raw ids. */
import { setAnalysisSettings, TIME_ZONES } from '@playline/access-keys';
import { html } from '@playline/api-docs';
import { choice, docsLink, keyValues, multilineField, panel, tag } from '../../frame/components.ts';
import type { FormValues, PortalPage } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'projects'>;

const ZONES = [...TIME_ZONES].map((value) => ({ value, text: value }));

export function createAnalystSettingsPage({ projects }: Parts): PortalPage {
  return {
    path: '/projects/:project/analyst-settings',
    access: 'project.read',
    notices: { saved: 'Analyst settings saved. They apply to new queries within a few seconds.' },
    show: (visit, failure) => {
      const { timeZone, safeProperties } = projectOf(visit);
      const shownOf = (name: string, stored: string) => failure?.values.text(name) ?? stored;
      const form = () =>
        visit.form(
          'save',
          html`${choice({ name: 'time-zone', label: 'Time zone of days', value: shownOf('time-zone', timeZone), choices: ZONES })}
${multilineField({ name: 'safe-properties', label: 'Safe properties', value: shownOf('safe-properties', safeProperties.join('\n')), hint: 'One property name per line. Analysts can read the complete values, also of stored events. Do not list properties that contain names, addresses or ids of players.' })}
<button>Save settings</button>`,
        );
      const names = safeProperties.length === 0 ? 'none' : safeProperties.map((name) => html`${tag(name)} `);
      const content = html`<p>Analysts see neither ids nor properties of players. Declare the properties that contain nothing personal, such as a level or a game mode, and analysts can read them in the column <code>safe_properties</code>. ${docsLink('/docs/analysts', 'How analysts query events')}</p>
${
  visit.can('analysis.set')
    ? panel('Settings', form())
    : panel(
        'Settings',
        keyValues([
          ['Time zone of days', timeZone],
          ['Safe properties', names],
        ]),
        { note: 'Owners can change them.' },
      )
}`;
      return { kind: 'page', title: 'Analyst settings', content };
    },
    actions: {
      save: {
        access: 'analysis.set',
        run: async (visit, values) => {
          const wanted = { timeZone: values.text('time-zone'), safeProperties: toNames(values) };
          await setAnalysisSettings({ store: projects.storeFor(visit.author) }, projectOf(visit).id, wanted);
          return { kind: 'redirect', notice: 'saved' };
        },
      },
    },
  };
}

function toNames(values: FormValues): string[] {
  const lines = values.text('safe-properties').split('\n');
  return lines.map((line) => line.trim()).filter((line) => line !== '');
}
