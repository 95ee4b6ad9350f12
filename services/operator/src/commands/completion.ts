import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { pathOf, withSubcommands } from '../app.ts';
import { type CreateCommand, command } from '../command.ts';
import { printLines } from '../terminal.ts';

/** @param folder of the checkout, whose package.json names all commands */
export const createCompletionCommand =
  (folder: string): CreateCommand =>
  (terminal) =>
    command('completion', 'print a script that completes npm run <command> -- … in bash')
      .addHelpText('after', '\nUse: source <(npm run --silent completion). It replaces another completion of npm.')
      .action((_, self) => {
        const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { scripts: object };
        const names = Object.keys(scripts).filter((name) => !name.includes(' '));
        printLines(terminal.result, toBash(names, self.parent!));
      });

/** The bash script, with the possible completions of each command. */
function toBash(names: readonly string[], program: CommandUnknownOpts): string {
  const cases = withSubcommands(program)
    .filter((each) => each !== program)
    // The first matching pattern applies, so subcommands precede their command.
    .toReversed()
    .map((each) => {
      const completions = [
        ...each.commands.map((sub) => sub.name()),
        ...each.options.map(({ long }) => long),
        '--help',
      ];
      return `    "${pathOf(each)} "*) options="${completions.join(' ')}" ;;`;
    });
  return `_playline() {
  local current=\${COMP_WORDS[COMP_CWORD]} options=
  [ "\${COMP_WORDS[1]}" = run ] || return
  if [ "$COMP_CWORD" -eq 2 ]; then
    options="${names.join(' ')}"
  elif [ "$COMP_CWORD" -ge 4 ] && [ "\${COMP_WORDS[3]}" = -- ]; then
    case "\${COMP_WORDS[2]} \${COMP_WORDS[@]:4:COMP_CWORD-4} " in
${cases.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$options" -- "$current"))
}
complete -o default -F _playline npm`;
}
