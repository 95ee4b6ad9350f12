/** A string without line breaks that is wider than any screen. */
const LONG = 'w'.repeat(2_000);

/** Strings that could be interpreted as markup, a script or a URL if they were not escaped. */
export const HOSTILE: Readonly<Record<string, string>> = {
  'a script element': '<script>parent.pwned=1</script>',
  'a closing script tag': '</script><script>pwned()</script>',
  'an injected attribute': '" onfocus="pwned()" autofocus="',
  'an attribute in single quotes': "' onmouseover='pwned()' x='",
  'a closing title tag': '</title><img src=x onerror=pwned()>',
  'a closing text area tag': '</textarea></select></template><svg onload=pwned()>',
  'a javascript URL': 'javascript:pwned()',
  'HTML entities': '&lt;script&gt;pwned()&lt;/script&gt; &#x3c;b&#x3e; &quot;&amp;amp;',
  'an unclosed comment': '--><img src=x onerror=pwned()><!--',
  'a base element': '<base href="//evil.test/"><meta http-equiv=refresh content="0;url=//evil.test">',
  'a CRLF header injection': 'x\r\nset-cookie: pwned=1\r\n\r\n<b>body</b>',
  'a server-sent event': 'x\n\nevent: pwned\ndata: {"pwned":1}\n\n',
  'a server-sent event with carriage returns': 'x\r\rdata: pwned\r\rid: 7\r\r',
  'Unicode line separators': 'x\u2028y\u2029z\u0085',
  'bidirectional overrides': 'user\u202egpj.exe\u202c \u2066x\u2069',
  'NUL characters': 'x\u0000y\u0000<b\u0000>',
  'control characters': 'x\u0001\u0007\u0008\u001b[31mred\u007f',
  'a lone surrogate': 'x\ud800y',
  'the __proto__ property': '__proto__',
  'the constructor property': 'constructor',
  'a very long string': LONG,
  'a protocol-relative URL': '//evil.test/%2e%2e',
  'a spreadsheet formula': '=HYPERLINK("//evil.test","pwned")',
  'only spaces': '   ',
};
