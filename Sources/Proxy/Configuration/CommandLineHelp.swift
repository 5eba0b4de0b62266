extension CommandLineArguments {
  /// The help text of the program or of one command, with a line end behind it.
  public static func helpText(_ topic: HelpTopic) -> String {
    switch topic {
    case .larder, .help:
      """
      Larder stands between apps and their APIs, and decides per route whether an answer comes from
      the local store or from the network.

      Usage: larder COMMAND [FLAGS]

        serve     serve apps as policies.json says
        check     check a policies.json and print every error
        config    print a policies.json with every default filled in
        explain   say what would become of a request, and why
        schema    print the JSON Schema of policies.json
        version   print the version
        help      print this, or the help of a command

      "larder COMMAND --help" says more of each. Exit status: 0 done, 1 failed, 2 a wrong command
      line or configuration.

      """
    case .serve:
      """
      Usage: larder serve [--config FILE] [--sample-origin]

      Serves apps as the configuration says, until SIGTERM or SIGINT ends it; running exchanges get
      the time that limits.drain gives them. A configuration that fails its own tests is not served.

        --config FILE     the configuration; default: policies.json
        --sample-origin   also run a small API to try things with, on port LARDER_SAMPLE_PORT
                          (default: 8090)

      Exit status: 0 stopped, 1 it could not serve, 2 a wrong command line or configuration.

      """
    case .check:
      """
      Usage: larder check [FILE] [--verbose]

      Checks a configuration (default: policies.json) as "larder serve" would, and prints every
      error and warning as FILE:LINE:COLUMN: path: what is wrong. Then its tests are run. Nothing
      is started.

        --verbose   also print what was understood, a table of the routes, and tests that passed

      Exit status: 0 sound (warnings allowed), 1 a test failed and nothing else is wrong, 2 refused.

      """
    case .config:
      """
      Usage: larder config [FILE]

      Prints the configuration (default: policies.json) as it works: a JSON that says everything,
      defaults filled in, each route with what it takes over. Values of the environment are filled
      in too, but no secrets: those are shown as ${NAME}, or as ${REDACTED} where the file has them.
      Errors and warnings go to standard error.

      Exit status: 0 printed, 2 refused.

      """
    case .explain:
      """
      Usage: larder explain [--config FILE] [--header "NAME: VALUE"]... [--json] [METHOD] URL

      Says what would become of a request: its route and why no earlier one took it, the strategy,
      the key, the user, what the origin would be asked, and each value of the policy with where it
      comes from. URL is a path or an absolute URL; METHOD is GET unless given. Nothing is started
      or asked. Credentials are shown as digests, where the store has the secret for them. What is
      stored, GET /explain of the admin listener says.

        --config FILE           the configuration; default: policies.json
        --header "NAME: VALUE"  a field of the request; any number
        --json                  JSON in place of text

      Exit status: 0 explained, 2 a wrong command line or configuration.

      """
    case .schema:
      """
      Usage: larder schema [--reference]

      Prints the JSON Schema of policies.json, for editors: larder schema > policies.schema.json

        --reference   print the table of fields that stands in docs/policies.md instead

      """
    case .version:
      """
      Usage: larder version

      Prints the version.

      """
    }
  }
}
