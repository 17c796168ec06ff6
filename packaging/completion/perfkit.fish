# fish completion for perfkit, which itself says what may come next.
function __perfkit_complete
    set -l begun (commandline -ct)
    set -l line (commandline -opc) $begun
    set -l option (string match -r -- '^--[^=]*=' $begun)
    or set option ''
    for found in (perfkit --complete $line[2..-1] 2>/dev/null)
        set -l parts (string split -m 1 \t -- $found)
        switch $parts[1]
            case :file
                for path in (__fish_complete_path (string replace -- "$option" '' $begun))
                    echo $option$path
                end
            case :folder
                for path in (__fish_complete_directories (string replace -- "$option" '' $begun))
                    echo $option$path
                end
            case :command # from word $parts[2] on, perfkit being word 0
                set -l rest $line[(math $parts[2] + 1)..-1]
                set -e rest[-1]
                complete -C "$(string join ' ' -- (string escape -- $rest)) $begun"
            case '*'
                echo $found
        end
    end
end
complete -c perfkit -f -a '(__perfkit_complete)'
